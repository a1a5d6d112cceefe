// SPDX-License-Identifier: Apache-2.0
// Who may speak to etcd: certificates, passwords, and what happens when they change.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { nth, poolOf, reservationOf } from "../../allocator/store/contract/samples.ts";
import { created, syncedWatch } from "../../allocator/store/contract/subject.ts";
import { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { openEtcdStore } from "../../allocator/store/etcd/store.ts";
import { createClock } from "../../system/clock.ts";
import type { CertificatePair } from "../../system/pem/pair.ts";
import { createRandom } from "../../system/random.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { issueAuthority, issueClient, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { enableAuth } from "./auth.ts";
import { openHandle } from "./handles.ts";
import { type Members, startMembers } from "./members.ts";

if (havePartsOrSkip(["etcd"])) {
  describe("an etcd that asks for certificates", () => {
    const folder = mkdtempSync(join(tmpdir(), "etcd-tls-"));
    const file = (name: string) => join(folder, name);
    const [caFile, certFile, keyFile] = [file("etcd-ca.pem"), file("etcd.pem"), file("etcd-key.pem")];
    const clock = createClock();
    let ca: CertificatePair;
    let members: Members;
    before(async () => {
      ca = await issueAuthority(clock);
      const names = { dnsNames: ["localhost"], addresses: ["127.0.0.1"] };
      const server = await issueServingCertificate(ca, names, clock);
      writeFileSync(caFile, ca.cert);
      writeFileSync(file("server.pem"), server.cert);
      writeFileSync(file("server-key.pem"), server.key);
      const tls = { cert: file("server.pem"), key: file("server-key.pem"), ca: caFile };
      members = await startMembers({ count: 1, tls });
      await become("root");
      const probe = openHandle(access());
      await eventually("etcd serves", () =>
        probe.store.get("pool", "db").then(
          () => true,
          () => undefined,
        ),
      );
      await probe.close();
      const root = await issueClient(ca, { name: "root", organization: "berth" }, clock);
      const material = {
        ca: Buffer.from(ca.cert),
        cert: Buffer.from(root.cert),
        key: Buffer.from(root.key),
      };
      await enableAuth(members.urls[0] ?? "", material, [
        { name: "host-a", password: "", prefix: "/berth/" },
        { name: "stranger", password: "", prefix: "/elsewhere/" },
      ]);
    });
    after(async () => {
      await members?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const access = () => ({ endpoints: members.urls, caFile, certFile, keyFile });
    const become = async (name: string) => {
      const pair = await issueClient(ca, { name, organization: "berth" }, clock);
      writeFileSync(certFile, pair.cert);
      writeFileSync(keyFile, pair.key);
    };

    it("knows a host by its certificate's name, and takes up the one that is put in its place", async () => {
      await become("host-a");
      const deps = { clock: new ManualClock(), random: createRandom(), log: noopLogger };
      const client = new EtcdClient(access(), deps);
      const store = openEtcdStore({ ...deps, client });
      const stored = await created(store, "pool", poolOf("db"));
      const watching = await syncedWatch(store, "pool");
      await become("stranger");
      assert.deepEqual(await store.get("pool", "db"), stored, "the connection is the old one");
      deps.clock.advance(5_001);
      await assert.rejects(store.get("pool", "db"), { code: "CONFIG_INVALID", message: /permission denied/ });
      await become("host-a");
      deps.clock.advance(5_001);
      assert.deepEqual(await store.get("pool", "db"), stored);
      const other = await created(store, "pool", poolOf("web"));
      await eventually("the watch goes on", () => {
        deps.clock.advance(1_000);
        return watching.state.get("web")?.revision === other.revision ? true : undefined;
      });
      await watching.stop();
      await store.close();
      await client.close();
    });

    it("is connected to again with the last whole pair while another one is half written", async () => {
      await become("host-a");
      const handle = openHandle(access());
      await handle.store.get("pool", "db");
      writeFileSync(certFile, "-----BEGIN CERTIFICATE-----\n");
      const [member] = members.all;
      await member?.daemon.stop("SIGKILL");
      member?.daemon.start();
      await eventually("it is asked again", () =>
        handle.store.get("pool", "db").then(
          () => true,
          () => undefined,
        ),
      );
      await handle.close();
    });

    it("is not spoken to when another authority has signed its certificate, or without one's own", async () => {
      await become("host-a");
      const stranger = await issueAuthority(clock);
      writeFileSync(file("other-ca.pem"), stranger.cert);
      for (const wrong of [
        { ...access(), caFile: file("other-ca.pem") },
        { endpoints: members.urls, caFile },
      ]) {
        const handle = openHandle(wrong);
        await assert.rejects(handle.store.get("pool", "db"), { code: "STORE_UNAVAILABLE" });
        await handle.close();
      }
    });
  });

  describe("an etcd that asks for a password", () => {
    let folder: string;
    let passwordFile: string;
    let members: Members;
    // not before: a run of other tests by their names makes the suite, and none of this
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), "etcd-password-"));
      passwordFile = join(folder, "password");
      writeFileSync(passwordFile, "first\n");
      members = await startMembers({ count: 1 });
      const users = [{ name: "berth", password: "first", prefix: "/berth/" }];
      await enableAuth(members.urls[0] ?? "", {}, users);
    });
    after(async () => {
      await members?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    it("is given it again when it has forgotten who asked, in calls and in a watch", async () => {
      const handle = openHandle({ endpoints: members.urls, user: "berth", passwordFile });
      await created(handle.store, "reservation", reservationOf(nth(1)));
      const watching = await syncedWatch(handle.store, "reservation");
      const [member] = members.all;
      assert.ok(member);
      await member.daemon.stop("SIGKILL"); // tokens are in its memory alone
      member.daemon.start();
      const second = await eventually("it serves again", () =>
        handle.store.create("reservation", reservationOf(nth(2))).catch(() => undefined),
      );
      assert.equal(second.stored.key, nth(2));
      await eventually("the watch goes on", () => (watching.state.has(nth(2)) ? true : undefined));
      await watching.stop();
      await handle.close();
    });

    it("says whom it refuses", async () => {
      writeFileSync(passwordFile, "wrong\n");
      const wrong = openHandle({ endpoints: members.urls, user: "berth", passwordFile });
      await assert.rejects(wrong.store.get("pool", "db"), {
        code: "CONFIG_INVALID",
        message: /authentication failed/,
      });
      const nobody = openHandle({ endpoints: members.urls });
      await assert.rejects(nobody.store.get("pool", "db"), {
        code: "CONFIG_INVALID",
        message: /user name is empty/,
      });
      await wrong.close();
      await nobody.close();
    });
  });
}
