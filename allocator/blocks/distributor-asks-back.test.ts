// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { openWorld } from "../../test/support/world.ts";
import { ownedIn } from "../cache/block-index.ts";
import { sizeOf } from "../ip/ip-range.ts";
import { distributor, Nodes, shared } from "./testing/block-nodes.ts";

describe("the distributor of blocks", () => {
  it("asks those back that nobody uses, no more than others lack, and where there are none for single addresses at once", async () => {
    await using world = await openWorld({ pools: [shared(30)] });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 21);
    await blocks.pass();
    await world.settle();
    const used = [0, 2, 1, 0, 2, 0];
    for (const [i, seen] of (await world.all("block")).entries())
      await world.realStore.reportBlock(seen, { node: "node-a", used: used[i] ?? 0 });
    const asked = async () => {
      for (let pass = 0; pass < 3; pass++) {
        await world.settle();
        await blocks.pass();
      }
      await world.settle();
      return [...world.cache.blocks()].flatMap(({ record: { recalledAt, recalledAddresses = 0, status } }) =>
        recalledAt === undefined && recalledAddresses === 0
          ? []
          : [`${recalledAt === undefined ? recalledAddresses : "all"} of one with ${status?.used} used`],
      );
    };
    nodes.pods.set("node-a", 5).set("node-b", 5);
    assert.deepEqual(await asked(), ["all of one with 0 used", "all of one with 0 used"]);
    nodes.pods.set("node-b", 12);
    const all = ["all of one with 0 used", "all of one with 0 used", "all of one with 0 used"];
    assert.deepEqual((await asked()).toSorted(), ["3 of one with 1 used", ...all]);
  });

  it("asks for single addresses of a block that is in use after all as soon as its owner says so", async () => {
    await using world = await openWorld({ pools: [shared(29)], clock: new ManualClock() });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 21);
    const pass = async () => {
      await blocks.pass();
      await world.settle();
      return await world.all("block");
    };
    await pass();
    nodes.pods.set("node-a", 3).set("node-b", 1);
    const [recalled, ...more] = (await pass()).filter(({ record }) => record.recalledAt !== undefined);
    assert.ok(recalled !== undefined && more.length === 0);
    await world.realStore.reportBlock(recalled, { node: "node-a", used: 1 });
    await world.settle();
    // one after the other, as others are empty by all that is known
    const [, next, ...others] = (await pass()).filter(({ record }) => record.recalledAt !== undefined);
    assert.ok(next !== undefined && others.length === 0);
    for (const seen of await world.all("block"))
      await world.realStore.reportBlock(seen, { node: "node-a", used: 1 });
    await world.settle();
    const singles = (await pass()).map(({ record }) => record.recalledAddresses ?? 0);
    assert.equal(Math.max(...singles), 1, "without any time gone by");
  });

  it("asks for blocks in use, too, where a node has fewer pods than it says that addresses are used", async () => {
    for (const length of [30, 32]) {
      await using world = await openWorld({ pools: [shared(length)] });
      const nodes = new Nodes();
      const blocks = distributor(world, nodes);
      nodes.pods.set("node-a", 21);
      await blocks.pass();
      await world.settle();
      for (const seen of await world.all("block")) {
        const used = ownedIn(seen.record).intervals.reduce((sum, one) => sum + Number(sizeOf(one)), 0);
        await world.realStore.reportBlock(seen, { node: "node-a", used });
      }
      const asked = async (a: number, b: number) => {
        nodes.pods.set("node-a", a).set("node-b", b);
        for (let pass = 0; pass < 3; pass++) {
          await world.settle();
          await blocks.pass();
        }
        return (await world.all("block")).filter(({ record }) => record.recalledAt !== undefined).length;
      };
      assert.equal(await asked(21, 5), 0, "it has as many pods as addresses");
      assert.equal(await asked(20, 1), 1);
      assert.equal(await asked(20, 5), 1, "the others are used");
      assert.equal(await asked(0, 21), length === 30 ? 6 : 21);
    }
  });

  it("asks another node when one that has more does not answer", async () => {
    await using world = await openWorld({ pools: [shared(30)], clock: new ManualClock() });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 13).set("node-c", 5);
    await blocks.pass();
    await world.settle();
    nodes.pods.set("node-a", 0).set("node-c", 0).set("node-b", 1);
    const asked = async () => {
      await blocks.pass();
      await world.settle();
      const all = (await world.all("block")).filter(({ record }) => record.recalledAt !== undefined);
      return all.map(({ record }) => record.node).sort();
    };
    assert.deepEqual([await asked(), await asked()], [["node-a"], ["node-a"]]);
    world.clock.advance(20_000);
    assert.deepEqual(await asked(), ["node-a", "node-c"]);
  });

  it("asks for all of a pool that is disabled or gone, and takes away what was never granted", async () => {
    const pool = shared(30);
    await using world = await openWorld({ pools: [pool], clock: new ManualClock() });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 5);
    await blocks.pass();
    const before = (await world.all("block")).length;
    const half = { cidr: "10.0.9.0/30", pool: "gone", node: "node-b", nodeUID: "u", holes: [] };
    await world.realStore.create("block", half);
    await world.realStore.create("block", { ...half, cidr: "10.0.9.4/30", granted: true });
    const seen = await world.realStore.get("pool", "web");
    assert.ok(seen);
    await world.realStore.replace("pool", seen, { ...pool, spec: { ...pool.spec, disabled: true } });
    await world.settle();
    assert.deepEqual(await blocks.pass(), []);
    const all = await world.all("block");
    assert.equal(all.length, before + 1);
    assert.ok(all.every(({ record }) => record.recalledAt === world.clock.now()));
    for (const block of all)
      await world.realStore.reportBlock(block, { node: block.record.node, used: 0, returnedAt: 1 });
    for (let pass = 0; pass < 2; pass++) {
      await world.settle();
      await blocks.pass();
      world.clock.advance(30_000);
    }
    assert.deepEqual(await world.all("block"), []);
  });
});
