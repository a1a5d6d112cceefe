// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { releasePreviousBoot } from "../background/orphan-sweeper.ts";
import { BlocksBench } from "../testing/blocks-bench.ts";

const FULL_DISK = new BerthError("STORE_FULL", "the disk is full");

let node: BlocksBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await BlocksBench.open();
  });
  afterEach(() => node.close());
}

describe("the blocks of a node", () => {
  setUp();

  it("are given from before the API server has answered, in the boot in which they were seen", async () => {
    await node.grant("10.0.0.4/32", "10.0.0.8/32");
    await node.add({ cid: "a" });
    node.blockSource.isSynced = false;
    node.blockSource.records.clear();
    node.blockSource.stored.clear();
    await node.restart();
    await node.add({ cid: "b" });
    assert.deepEqual(node.held, ["10.0.0.4", "10.0.0.8"]);
  });

  it("are chosen without an API server as the journal had the pools, where the network names none", async () => {
    node.ipam = {};
    node.pool("db", "10.0.0.0/24", { ipv4: 30 }, { default: true });
    node.pool("first", "10.9.0.0/24", { ipv4: 30 }, { default: true, priority: 1 });
    node.blockSource.grant("first", "10.9.0.4/30");
    await node.grant("10.0.0.4/30");
    const restartAlone = async () => {
      node.blockSource.isSynced = false;
      node.blockSource.records.clear();
      node.blockSource.stored.clear();
      await node.restart();
    };
    await restartAlone();
    assert.deepEqual(await node.add({ cid: "a" }), ["10.9.0.4"]);
    node.reboot();
    await restartAlone();
    assert.match(await node.refusal({ cid: "b" }), /which pools there are is not known on this node/);
  });

  it("are not given from in another boot before their records are seen: the node may have been fenced", async () => {
    node.blockSource.refusalsNameAll = true;
    await node.grant("10.0.0.4/32", "10.0.0.8/32");
    node.blockSource.isSynced = false;
    node.blockSource.records.clear();
    node.reboot();
    await node.restart();
    assert.match(await node.refusal(), /this node has no IPv4 block/);
    await node.grant("10.0.0.8/32");
    assert.deepEqual(await node.add(), ["10.0.0.8"]);
    node.blockSource.records.clear();
    await node.restart();
    assert.match(await node.refusal({ cid: "b" }), /10\.0\.0\.8\/32, have no free address/);
  });

  it("of another boot have no addresses that cool: a node starts all its pods at once", async () => {
    await node.grant("10.0.0.4/32");
    await node.add({ cid: "a" });
    node.reboot();
    await node.restart();
    await releasePreviousBoot(node.parts);
    assert.deepEqual(await node.add({ cid: "b" }), ["10.0.0.4"]);
  });

  it("are not given from when the record is not granted, cools, or is gone after all was listed", async () => {
    for (const over of [{ granted: false }, { releasedAt: 1 }]) {
      node.blockSource.grant("db", "10.0.0.4/30", over);
      await node.hearBlocks();
      assert.match(await node.refusal(), /this node has no IPv4 block/);
    }
    await node.grant("10.0.0.4/30");
    await node.add({ cid: "a" });
    node.blockSource.records.clear();
    await node.hearBlocks();
    assert.match(await node.refusal({ cid: "b" }), /this node has no IPv4 block/);
    assert.deepEqual(node.held, ["10.0.0.4"]);
    assert.deepEqual(node.parts.journal.load().blocks, []);
  });

  it("that are granted anew keep the addresses of sandboxes that were there before", async () => {
    await node.grant("10.0.0.4/31");
    await node.add({ cid: "a" });
    node.blockSource.grant("db", "10.0.0.4/31", {}, "another");
    await node.hearBlocks();
    assert.deepEqual(await node.add({ cid: "b" }), ["10.0.0.5"]);
    assert.match(await node.refusal({ cid: "c" }), /2 in use/);
  });

  it("that are given back give nothing any more, in this process and in the next, by the same record", async () => {
    await node.grant("10.0.0.4/31");
    const { blockFollower, clock } = node.parts;
    await node.add({ cid: "a" });
    assert.equal(await blockFollower.giveUp("10.0.0.4/31", clock.now()), false);
    await node.del({ cid: "a" });
    await node.clock.advance(60_000);
    assert.equal(await blockFollower.giveUp("10.0.0.4/31", clock.now()), true);
    const words = /no IPv4 block of pool "db", whose blocks are \/30 \(one is being given back\)/;
    for (const again of [() => node.hearBlocks(), () => node.restart(), () => node.hearBlocks()]) {
      await again();
      assert.match(await node.refusal({ cid: "b" }), words);
    }
    node.blockSource.grant("db", "10.0.0.4/31", {}, "another");
    await node.hearBlocks();
    await node.add({ cid: "b" });
  });

  it("are not given back when that cannot be put down", async () => {
    await node.grant("10.0.0.4/31");
    node.diskFault = FULL_DISK;
    await assert.rejects(node.parts.blockFollower.giveUp("10.0.0.4/31", 1), FULL_DISK);
    node.diskFault = undefined;
    await node.add();
  });

  it("are given back or given from, never both, when both begin at once", async () => {
    await node.grant("10.0.0.4/31");
    const adding = node.call("ADD");
    const given = await node.parts.blockFollower.giveUp("10.0.0.4/31", 1);
    const answer = await node.ended(adding);
    assert.equal(given, answer.exitStatus !== 0, answer.stdout);
  });
});
