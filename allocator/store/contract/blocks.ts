// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import type { BlockStatus } from "../../model/block.ts";
import type { Store, Stored } from "../store.ts";
import { blockOf, fullBlock } from "./samples.ts";
import { caseOf, converges, created, expectReplaced, listed, type Open, syncedWatch } from "./subject.ts";

const USED: BlockStatus = { node: "node-a", used: 3 };
const RETURNED: BlockStatus = { node: "node-a", used: 0, returnedAt: 1_700_000_000_006 };

export function blockCases(open: Open): void {
  caseOf(open, "have one owner, whoever asks at once", async ({ store }) => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        store.create("block", blockOf("10.20.4.0/26", { node: `node-${i}` })),
      ),
    );
    const winners = results.filter((result) => result.kind === "created");
    assert.equal(winners.length, 1);
    for (const result of results) assert.deepEqual(result.stored, winners[0]?.stored);
  });

  caseOf(open, "are kept under their CIDR with every field, of both families", async ({ store }) => {
    const blocks = ["10.20.0.64/26", "10.20.0.64/32", "fd00:20::40/122", "::/116"].map(fullBlock);
    for (const block of blocks) {
      const stored = await created(store, "block", block);
      assert.deepEqual([stored.key, stored.record], [block.cidr, block]);
      assert.deepEqual(await store.get("block", block.cidr), stored);
    }
    assert.equal(await store.get("block", "10.20.0.64/27"), undefined);
    assert.deepEqual(
      (await listed(store, "block")).map(({ key }) => key).sort(),
      blocks.map(({ cidr }) => cidr).sort(),
    );
  });

  caseOf(open, "are granted, and given back, by compare-and-set", async ({ store }) => {
    const made = await created(store, "block", blockOf("10.20.4.0/26"));
    const granted = expectReplaced(
      await store.replace("block", made, { ...made.record, holes: ["10.20.4.7/32"], granted: true }),
    );
    assert.deepEqual(granted.record, blockOf("10.20.4.0/26", { holes: ["10.20.4.7/32"], granted: true }));
    assert.deepEqual(await store.replace("block", made, made.record), { kind: "conflict" });
    assert.deepEqual(await store.remove("block", made), { kind: "conflict" });
    const cooling = expectReplaced(
      await store.replace("block", granted, { ...granted.record, releasedAt: 5 }),
    );
    assert.deepEqual(await store.remove("block", cooling), { kind: "removed" });
    const again = await created(store, "block", blockOf("10.20.4.0/26", { node: "node-b" }));
    assert.notEqual(again.uid, made.uid);
  });

  caseOf(open, "are told by a watch", async ({ store }) => {
    const watching = await syncedWatch(store, "block");
    const made = await created(store, "block", blockOf("fd00:20::40/122"));
    await converges(watching, [made]);
    const granted = expectReplaced(await store.replace("block", made, { ...made.record, granted: true }));
    await converges(watching, [granted]);
    await store.remove("block", granted);
    await converges(watching, []);
    await watching.stop();
  });
}

export function blockStatusCases(open: Open): void {
  const granted = (store: Store) =>
    created(store, "block", blockOf("10.20.4.0/26", { granted: true, status: USED }));

  caseOf(open, "is none when it is made, and is written apart", async ({ store }) => {
    const made = await granted(store);
    assert.deepEqual(made.record, blockOf("10.20.4.0/26", { granted: true }));
    const other: Stored<"block"> = { ...made, record: { ...made.record, holes: ["10.20.4.0/32"] } };
    const used = expectReplaced(await store.reportBlock(other, USED));
    assert.deepEqual(used.record, { ...made.record, status: USED });
    assert.deepEqual([used.uid, used.createdAt], [made.uid, made.createdAt]);
    assert.notEqual(used.revision, made.revision);
    const returned = expectReplaced(await store.reportBlock(used, RETURNED));
    assert.deepEqual(returned.record.status, RETURNED);
    assert.deepEqual(await store.get("block", made.key), returned);
  });

  caseOf(open, "is not touched by a replace, whatever that says of it", async ({ store }) => {
    const made = await granted(store);
    const without = expectReplaced(
      await store.replace("block", made, { ...made.record, recalledAt: 7, status: USED }),
    );
    assert.deepEqual(without.record, { ...made.record, recalledAt: 7 });
    const used = expectReplaced(await store.reportBlock(without, RETURNED));
    const { status: _, ...rest } = used.record;
    for (const next of [rest, { ...rest, status: USED }]) {
      const seen = await store.get("block", made.key);
      assert.ok(seen);
      const cooling = expectReplaced(await store.replace("block", seen, { ...next, releasedAt: 8 }));
      assert.deepEqual(cooling.record, { ...rest, releasedAt: 8, status: RETURNED });
    }
  });

  caseOf(open, "is not written from a stale revision, nor of another incarnation", async ({ store }) => {
    const made = await granted(store);
    const used = expectReplaced(await store.reportBlock(made, USED));
    assert.deepEqual(await store.reportBlock(made, RETURNED), { kind: "conflict" });
    assert.deepEqual(await store.replace("block", made, made.record), { kind: "conflict" });
    assert.deepEqual(await store.remove("block", made), { kind: "conflict" });
    await store.remove("block", used);
    assert.deepEqual(await store.reportBlock(used, RETURNED), { kind: "conflict" });
    const next = await granted(store);
    assert.deepEqual(await store.reportBlock(used, RETURNED), { kind: "conflict" });
    assert.deepEqual(await listed(store, "block"), [next]);
  });

  caseOf(open, "that says the same once more is a new revision, and a watch tells it", async ({ store }) => {
    const watching = await syncedWatch(store, "block");
    const used = expectReplaced(await store.reportBlock(await granted(store), USED));
    await converges(watching, [used]);
    const again = expectReplaced(await store.reportBlock(used, USED));
    assert.notEqual(again.revision, used.revision);
    assert.deepEqual(again.record, used.record);
    await converges(watching, [again]);
    await watching.stop();
  });
}
