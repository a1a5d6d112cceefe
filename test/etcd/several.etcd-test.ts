// SPDX-License-Identifier: Apache-2.0
// One host whose networks are kept in several etcds, each as its configuration says: URL and certificates.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { addressesIn, failureOf, type NetworkConfig, type Sandbox } from "../support/runtime.ts";
import { taken } from "./handles.ts";
import { berthctl, HostProcess, listed } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";
import { TlsEtcd } from "./tls-etcd.ts";

type Files = Readonly<Record<string, string>>;

function network(name: string, etcdURL: string, files: Files = {}): NetworkConfig {
  const range = { subnet: "10.10.20.0/24", rangeStart: "10.10.20.50", rangeEnd: "10.10.20.70" };
  const ipam = { type: "berth", etcdConfig: { etcdURL, ...files }, ...range };
  return { cniVersion: "1.1.0", name, type: "bridge", ipam };
}

if (havePartsOrSkip(["etcd"])) {
  describe("a host whose networks are kept in several etcds", () => {
    let own: Members;
    let other: TlsEtcd;
    let host: HostProcess;
    before(async () => {
      own = await startMembers({ count: 1 });
      other = await TlsEtcd.start();
      const flags = ["--etcd-certificates", other.folder];
      const lan = network("lan", own.urls[0] ?? "");
      host = await HostProcess.start({ node: "host-a", urls: own.urls, network: lan, flags });
    });
    after(async () => {
      await host?.remove();
      await other?.close();
      await own?.close();
    });

    const filesOf = (cert = "etcd.pem", key = "etcd-key.pem"): Files => ({
      etcdCertFile: other.file(cert),
      etcdKeyFile: other.file(key),
      etcdTrustedCAFileFile: other.file("etcd-ca.pem"),
    });
    const yard = (name: string, files: Files = filesOf(), url = other.urls[0] ?? "") =>
      host.runtimeOf(network(name, url, files));
    const inOther = (kind: string) => listed(other.urls, kind, other.flags);
    const etcds = () => {
      const database = new DatabaseSync(join(host.folder, "data/berth.db"), { readOnly: true });
      try {
        return database.prepare("SELECT name FROM etcds").all().length;
      } finally {
        database.close();
      }
    };
    const kept = new Map<string, Sandbox>();

    it("gives from each what is its own: one address twice on two wires", async () => {
      const [near, far] = [host.container(), host.container()];
      const asked = { args: "IP=10.10.20.60" };
      assert.deepEqual(await host.runtime.attach(near, asked), ["10.10.20.60/24"]);
      assert.deepEqual(await yard("yard").attach(far, asked), ["10.10.20.60/24"]);
      assert.deepEqual(await listed(own.urls, "pools"), ["lan"]);
      assert.deepEqual(await inOther("pools"), ["yard"]);
      assert.deepEqual(await taken(other.access), ["10.10.20.60"]);
      kept.set("yard", far);
      await host.runtime.detach(near);
    });

    it("knows a cluster that is named otherwise for the same one", async () => {
      const url = (other.urls[0] ?? "").replace("127.0.0.1", "localhost");
      const { msg } = failureOf(await yard("dock", filesOf(), url).add(host.container()));
      assert.match(msg, /pools dock and yard both contain 10\.10\.20\.50/);
      assert.equal(etcds(), 1);
    });

    it("reads the certificates from where a network says that they are now", async () => {
      await other.issue("etcd-2.pem", "etcd-2-key.pem");
      for (const name of ["etcd.pem", "etcd-key.pem"]) rmSync(other.file(name));
      const files = filesOf("etcd-2.pem", "etcd-2-key.pem");
      const next = host.container();
      assert.equal(addressesIn(await yard("yard", files).add(next)).length, 1);
      kept.set("next", next);
      assert.equal(etcds(), 1);
      await other.issue("etcd.pem", "etcd-key.pem"); // for whoever looks
    });

    it("finds them again after kill -9, for a DEL that brings no etcd of its own", async () => {
      await host.kill9();
      await host.up();
      const far = kept.get("yard") ?? assert.fail();
      const bare = host.runtimeOf({ ...network("yard", "http://127.0.0.1:1") });
      await bare.detach(far);
      await eventually("its address is given back", async () =>
        (await taken(other.access)).includes("10.10.20.60") ? undefined : true,
      );
      assert.equal((await taken(other.access)).length, 1);
    });

    it("gives back by GC what a runtime does not name", async () => {
      const gone = host.container();
      await yard("yard").attach(gone);
      await yard("yard").collect([kept.get("next") ?? assert.fail()]);
      await eventually("one address is left", async () =>
        (await taken(other.access)).length === 1 ? true : undefined,
      );
    });

    it("reads no other file than those in its folder", async () => {
      for (const path of ["/etc/shadow", `${other.folder}/../x.pem`, "etcd.pem", other.folder]) {
        const files = { ...filesOf(), etcdKeyFile: path };
        const { code, msg } = failureOf(await yard("yard", files).add(host.container()));
        assert.equal(code, 100, msg);
        assert.ok(
          msg.startsWith(`ipam.etcdConfig.etcdKeyFile: ${JSON.stringify(path)} is not in ${other.folder}`),
          msg,
        );
      }
    });

    it("says of one that cannot be reached which it is, and serves from the others", async () => {
      const { msg } = failureOf(await yard("shed", {}, "http://127.0.0.1:1").add(host.container()));
      assert.match(
        msg,
        /^no address of pool "shed" can be proven free: etcd at http:\/\/127\.0\.0\.1:1 cannot be reached/,
      );
      assert.equal(addressesIn(await host.runtime.add(host.container())).length, 1);
      assert.equal(etcds(), 1);
    });

    it("leaves one that it has nothing in any more, at the next start", async () => {
      await host.runtimeOf(network("yard", other.urls[0] ?? "")).detach(kept.get("next") ?? assert.fail());
      await eventually("nothing is held there", async () =>
        (await taken(other.access)).length === 0 ? true : undefined,
      );
      const { rc, stdout } = await berthctl(other.urls, ...other.flags, "check");
      assert.equal(rc, 0, stdout);
      await host.kill9();
      await host.up();
      await eventually("it is left", async () => (etcds() === 0 ? true : undefined));
      assert.equal(addressesIn(await yard("yard").add(host.container())).length, 1);
      assert.equal(etcds(), 1);
    });
  });
}
