// SPDX-License-Identifier: Apache-2.0
// Members that die and hang under hosts that take and give addresses. What they do without a majority is in majority.etcd-test.ts.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { converges, listed, syncedWatch } from "../../allocator/store/contract/subject.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { Ledger, liveAs } from "./chaos-hosts.ts";
import { type Handle, openHandle } from "./handles.ts";
import { compact, type Members, startMembers } from "./members.ts";

const RANGE = 60;
/** How many addresses are taken between two blows, and after the last one. */
const ENOUGH = 15;

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

    it("never have one twice and lose none while members are killed and hang one after another", async () => {
      const ledger = new Ledger();
      const stop = new AbortController();
      const [first] = handles;
      assert.ok(first);
      const watching = await syncedWatch(first.store, "reservation");
      const lives = handles.map(({ store }, i) =>
        liveAs(`host-${"abc"[i]}`, store, ledger, { range: RANGE, signal: stop.signal }),
      );
      const more = async () => {
        const target = ledger.created + ENOUGH;
        await eventually("addresses are taken", () => (ledger.created >= target ? true : undefined), 120_000);
      };
      await more();
      for (const { daemon } of members.all) {
        await daemon.stop("SIGKILL");
        await more();
        daemon.start();
        await compact(members);
        await more();
        daemon.pause();
        await more();
        daemon.resume();
        await more();
      }
      stop.abort();
      await Promise.all(lives);
      await ledger.check(first.store);
      await converges(watching, await listed(first.store, "reservation"));
      await watching.stop();
    });
  });
}
