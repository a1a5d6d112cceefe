// SPDX-License-Identifier: Apache-2.0
// Members that hang until there is no majority, compact what a watch has not seen, and run full. Under load they die in chaos.etcd-test.ts.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { nth, poolOf, reservationOf } from "../../allocator/store/contract/samples.ts";
import { converges, created, listed, syncedWatch } from "../../allocator/store/contract/subject.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { type Handle, openHandle } from "./handles.ts";
import { compact, type Members, startMembers } from "./members.ts";
import { OneWayProxy } from "./one-way-proxy.ts";

if (havePartsOrSkip(["etcd"])) {
  describe("hosts that share addresses in etcd", () => {
    let members: Members;
    let handles: Handle[];
    before(async () => {
      members = await startMembers();
      handles = ["a", "b", "c"].map(() => openHandle({ endpoints: members.urls }));
    });
    after(async () => {
      for (const { daemon } of members?.all ?? []) daemon.resume();
      for (const handle of handles ?? []) await handle.close();
      await members?.close();
    });

    it("are refused in words, and told nothing that is not so, while there is no majority", async () => {
      const [one, two] = members.all;
      const [first, second] = handles;
      assert.ok(one && two && first && second);
      const seen = await created(first.store, "reservation", reservationOf(nth(1000)));
      const watching = await syncedWatch(second.store, "reservation");
      one.daemon.pause();
      two.daemon.pause();
      try {
        const attempts = [
          first.store.create("reservation", reservationOf(nth(1001))),
          first.store.replace("reservation", seen, { ...seen.record, marked: true }),
          first.store.get("reservation", nth(1000)),
        ];
        for (const result of await Promise.allSettled(attempts)) {
          assert.ok(result.status === "rejected" && result.reason instanceof BerthError);
          assert.match(result.reason.code, /^(STORE_UNAVAILABLE|TIMED_OUT)$/);
          assert.match(result.reason.message, /etcd at http:\/\/127\.0\.0\.1/);
        }
      } finally {
        one.daemon.resume();
        two.daemon.resume();
      }
      const third = await eventually("writes are taken again", () =>
        first.store.create("reservation", reservationOf(nth(1002))).catch(() => undefined),
      );
      assert.equal(third.kind, "created");
      await converges(watching, await listed(second.store, "reservation"));
      await watching.stop();
    });

    it("are told by a watch of what they missed, though it was compacted away meanwhile", async () => {
      const proxy = await OneWayProxy.start(members.urls[0] ?? "");
      const handle = openHandle({ endpoints: [proxy.url] });
      const watching = await syncedWatch(handle.store, "pool");
      const [writer] = handles;
      assert.ok(writer);
      const gone = await created(writer.store, "pool", poolOf("gone"));
      await converges(watching, [gone]);
      proxy.loses = "answers";
      await writer.store.remove("pool", gone);
      const pools = [];
      for (let i = 0; i < 5; i++) pools.push(await created(writer.store, "pool", poolOf(`p${i}`)));
      await compact(members);
      proxy.cut();
      await converges(watching, pools);
      assert.equal(watching.said.filter(({ type }) => type === "relist").length, 2);
      await watching.stop();
      await handle.close();
      await proxy.close();
    });
  });

  describe("an etcd whose quota is used up", () => {
    let members: Members;
    let handle: Handle;
    before(async () => {
      members = await startMembers({ flags: ["--quota-backend-bytes=2097152"] });
      handle = openHandle({ endpoints: members.urls });
    });
    after(async () => {
      await handle?.close();
      await members?.close();
    });

    it("refuses what is new in words, still gives back, and serves again when there is room", async () => {
      const held = await created(handle.store, "reservation", reservationOf(nth(1)));
      const value = Buffer.alloc(256 * 1024, 1).toString("base64");
      for (let i = 0; i < 20; i++) {
        const key = Buffer.from(`/filler/${i}`).toString("base64");
        if ((await members.ask("kv/put", { key, value }).catch(() => "full")) === "full") break;
      }
      await assert.rejects(handle.store.create("reservation", reservationOf(nth(2))), {
        code: "STORE_FULL",
        message: /quota is used up \(alarm NOSPACE\)/,
      });
      assert.equal(await handle.store.get("reservation", nth(2)), undefined);
      assert.deepEqual(await handle.store.get("reservation", nth(1)), held);
      assert.deepEqual(await handle.store.remove("reservation", held), { kind: "removed" });
      const [from, to] = ["/filler/", "/filler0"].map((text) => Buffer.from(text).toString("base64"));
      const { header } = await members.ask("kv/deleterange", { key: from, range_end: to });
      await members.ask("kv/compaction", {
        revision: (header as { revision: string }).revision,
        physical: true,
      });
      for (const { url } of members.all)
        await fetch(`${url}/v3/maintenance/defragment`, { method: "POST", body: "{}" });
      const { alarms = [] } = await members.ask("maintenance/alarm", { action: "GET" });
      for (const alarm of alarms as { memberID: string; alarm: string }[]) {
        await members.ask("maintenance/alarm", { action: "DEACTIVATE", ...alarm });
      }
      const after = await handle.store.create("reservation", reservationOf(nth(2)));
      assert.equal(after.kind, "created");
    });
  });
}
