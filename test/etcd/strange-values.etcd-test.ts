// SPDX-License-Identifier: Apache-2.0
// What whoever has the certificate of Berth's role may write below its prefix, and what it costs the hosts: values that are far
// too long, and values that are no records.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { bareClaim, nth, poolOf, reservationOf } from "../../allocator/store/contract/samples.ts";
import { created, listed, syncedWatch } from "../../allocator/store/contract/subject.ts";
import { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { openEtcdStore } from "../../allocator/store/etcd/store.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { runsOf } from "../support/runs.ts";
import { addressesIn, failureOf, type NetworkConfig } from "../support/runtime.ts";
import { openHandle } from "./handles.ts";
import { berthctl, HostProcess } from "./host-process.ts";
import { callsOf, type Members, startMembers } from "./members.ts";

const MB = 1_000_000;
/** Of a MB each, half of them of one kind: more than an answer has room for. */
const LONG_KEYS = runsOf(120, 48);

if (havePartsOrSkip(["etcd"])) {
  const lan = (etcdURL: string | undefined): NetworkConfig => ({
    cniVersion: "1.0.0",
    name: "lan",
    type: "bridge",
    ipam: {
      type: "berth",
      etcdConfig: { etcdURL },
      subnet: "10.10.20.0/24",
      rangeStart: "10.10.20.50",
      rangeEnd: "10.10.20.52",
    },
  });

  /** Whatever it is, without a look at what is there. */
  async function write({ urls }: Members, key: string, value: string): Promise<void> {
    const encoded = (text: string) => Buffer.from(text).toString("base64");
    const body = JSON.stringify({ key: encoded(key), value: encoded(value) });
    const answer = await fetch(`${urls[0]}/v3/kv/put`, { method: "POST", body });
    assert.ok(answer.ok, await answer.text());
  }

  describe("an etcd with values that are longer than any record", () => {
    let members: Members;
    before(async () => {
      members = await startMembers({ count: 1, flags: ["--max-request-bytes=33554432"] });
    });
    after(() => members?.close());

    it("keeps no restarted host from serving, which says which keys they are", async () => {
      const host = await HostProcess.start({
        node: "host-a",
        urls: members.urls,
        network: lan(members.urls[0]),
      });
      try {
        const [address = ""] = addressesIn(await host.runtime.add(host.container()));
        await host.kill9();
        for (let n = 0; n < LONG_KEYS; n++) {
          const key = `/berth/v1/${n % 2 === 0 ? "claim/default" : "host"}/long-${100 + n}`;
          await write(members, key, "x".repeat(MB));
        }
        const before = await callsOf(members);
        await host.up();
        const [other = ""] = await eventually("it serves", async () => {
          const answer = await host.runtime.add(host.container());
          return answer.kind === "succeeded" ? addressesIn(answer) : undefined;
        });
        assert.notEqual(other, address);
        assert.ok((await callsOf(members)) - before < 2 * LONG_KEYS, "pages have several keys");
        const { rc, stdout, stderr } = await berthctl(members.urls, "get", "claims");
        assert.equal(rc, 0, stderr);
        assert.equal(stdout.trim().split("\n").length, 3, stdout);
        assert.match(stderr, /^Warning: \/berth\/v1\/claim\/default\/long-100 in etcd is no record/m);
      } finally {
        await host.remove();
      }
    });

    it("is listed and watched in smaller pages, and one that no answer has room for is told by its key", async () => {
      const warned: unknown[] = [];
      const log = {
        ...noopLogger,
        warn: (...said: unknown[]) => warned.push(said),
        error: (...said: unknown[]) => warned.push(said),
      };
      const deps = { clock: createClock(), random: createRandom(), log };
      const client = new EtcdClient({ endpoints: members.urls }, deps);
      const prefix = "/berth-long";
      const store = openEtcdStore({ ...deps, client, prefix });
      try {
        for (const name of ["a", "z"]) await created(store, "claim", bareClaim(name));
        const watching = await syncedWatch(store, "claim");
        await write(members, `${prefix}/claim/shop/m`, "x".repeat(18 * MB));
        await created(store, "claim", bareClaim("zz"));
        await eventually("the watch goes on behind it", () => watching.state.has("shop/zz") || undefined);
        await watching.stop();
        assert.ok(!watching.state.has("shop/m"));
        const anew = await syncedWatch(store, "claim");
        assert.deepEqual([...anew.state.keys()].toSorted(), ["shop/a", "shop/z", "shop/zz"]);
        await anew.stop();
        const words =
          /\/berth-long\/claim\/shop\/m in etcd is no record \(its value is longer than 16777216 bytes\)/;
        assert.match(JSON.stringify(warned), words);
        assert.match(JSON.stringify(warned), /longer than any record, and slow to list.*claim\/shop\/m/);
        await assert.rejects(listed(store, "claim"), { code: "STATE_CORRUPT", message: words });
        const fault = { code: "STATE_CORRUPT", message: /longer than any record/ };
        await assert.rejects(store.get("claim", "shop/m"), fault);
        await assert.rejects(store.create("claim", bareClaim("m")), fault);
      } finally {
        await store.close();
        await client.close();
      }
    });
  });

  describe("an etcd with keys that are no records", () => {
    let members: Members;
    before(async () => {
      members = await startMembers({ count: 1 });
      const { store, close } = openHandle({ endpoints: members.urls });
      await created(store, "pool", poolOf("db"));
      const claims = ["read", "unread"].map((name, n) =>
        bareClaim(name, { addresses: [nth(n + 1)], nonce: name }),
      );
      for (const [n, claim] of claims.entries()) {
        await created(store, "claim", claim);
        const { namespace, name } = claim;
        await created(
          store,
          "reservation",
          reservationOf(nth(n + 1), { claim: { namespace, name }, nonce: name }),
        );
      }
      await close();
      await write(members, "/berth/v1/claim/shop/unread", "{}");
      await write(members, `/berth/v1/reservation/${nth(5)}`, "nothing");
      await write(members, "/berth/v1/host/host-x", "[]");
    });
    after(() => members?.close());

    /** Its output, once it has ended with `code`. */
    async function reported(code: number, ...args: readonly string[]): Promise<string> {
      const { rc, stdout, stderr } = await berthctl(members.urls, ...args);
      assert.equal(rc, code, stdout + stderr);
      return stdout + stderr;
    }

    const claim =
      /Warning: \/berth\/v1\/claim\/shop\/unread in etcd is no record .*; delete it, or restore it from a backup/;

    it("is listed without them, and each is named", async () => {
      const claims = await reported(0, "get", "claims", "-A");
      assert.match(claims, /^shop +read /m);
      assert.match(claims, claim);
      assert.match(await reported(0, "get", "claims", "-A", "-o", "json"), claim);
      assert.match(
        await reported(0, "get", "hosts"),
        /Warning: \/berth\/v1\/host\/host-x in etcd is no host/,
      );
      assert.match(
        await reported(0, "get", "reservations"),
        new RegExp(`Warning: /berth/v1/reservation/${nth(5)} `),
      );
    });

    it("is checked without them: each is a defect, and what they may explain is none", async () => {
      const { findings } = JSON.parse(await reported(1, "check", "-o", "json")) as {
        findings: readonly { readonly kind: string; readonly subject: string }[];
      };
      const kinds = findings.map(({ kind, subject }) => `${kind} ${subject}`).toSorted();
      assert.deepEqual(kinds, [`unread ${nth(5)}`, "unread shop/unread"]);
    });

    it("says of an address that it is taken, and why nobody knows by whom", async () => {
      assert.match(await reported(0, "who", nth(1)), /is held\n(.*\n)*.*shop\/read/);
      assert.match(
        await reported(0, "who", nth(5)),
        /is taken: what is stored of it cannot be read\n.*\n? *unread .*no record/,
      );
      const held = await reported(0, "who", nth(2));
      assert.match(held, /is taken: what is stored of it cannot be read/);
      assert.match(held, /claim +shop\/unread/);
    });

    it("gives an address that one of them has to nobody, and no pool is changed", async () => {
      const { store, close } = openHandle({ endpoints: members.urls });
      await assert.rejects(store.create("reservation", reservationOf(nth(5))), { code: "STATE_CORRUPT" });
      await close();
      const words = /pools are not changed before all records can be read: .*\(and 1 more: berthctl check\)/;
      assert.match(await reported(2, "delete", "pool/db"), words);
      const host = await HostProcess.start({
        node: "host-a",
        urls: members.urls,
        network: lan(members.urls[0]),
      });
      try {
        await write(members, "/berth/v1/reservation/10.10.20.50", "nothing");
        const given = [await host.runtime.add(host.container()), await host.runtime.add(host.container())];
        assert.deepEqual(given.flatMap(addressesIn).toSorted(), ["10.10.20.51/24", "10.10.20.52/24"]);
        assert.match(failureOf(await host.runtime.add(host.container())).msg, /pool "lan"/);
      } finally {
        await host.remove();
      }
    });
  });
}
