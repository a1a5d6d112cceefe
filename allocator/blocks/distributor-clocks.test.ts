// SPDX-License-Identifier: Apache-2.0
// Blocks with times that a clock has written which was ahead (ADR 0014).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Block } from "../model/block.ts";
import { distributor, Nodes, shared } from "./testing/block-nodes.ts";
import { Nodes as CidrNodes, distributor as cidrDistributor, nodesPool } from "./testing/cidr-nodes.ts";

const YEAR = 365 * 86_400_000;

async function write(world: World, over: (block: Block) => Partial<Block>): Promise<void> {
  for (const seen of await world.all("block"))
    await world.realStore.replace("block", seen, { ...seen.record, ...over(seen.record) });
  await world.settle();
}

describe("a block whose time is in the future", () => {
  it("cools from when it was met, and no longer than its pool says", async () => {
    await using world = await openWorld({ pools: [shared(30)], clock: new ManualClock() });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 21);
    await blocks.pass();
    await write(world, () => ({ releasedAt: world.clock.now() + YEAR }));
    nodes.pods.set("node-a", 0);
    const left = async () => {
      await blocks.pass();
      await world.settle();
      return (await world.all("block")).length;
    };
    assert.equal(await left(), 6);
    world.clock.advance(29_999);
    assert.equal(await left(), 6);
    world.clock.advance(1);
    await left();
    assert.ok((await world.all("block")).every(({ record }) => record.releasedAt === undefined));
  });

  it("is waited for while it cools, and so nobody is asked", async () => {
    await using world = await openWorld({ pools: [shared(32)], clock: new ManualClock() });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 20).set("node-b", 1);
    await blocks.pass();
    await write(world, ({ node }) => (node === "node-b" ? { releasedAt: world.clock.now() + YEAR } : {}));
    nodes.pods.set("node-a", 19);
    await blocks.pass();
    await world.settle();
    assert.ok((await world.all("block")).every(({ record }) => record.recalledAt === undefined));
  });

  it("that was asked for counts as not answered after 20 s, and another node is asked", async () => {
    await using world = await openWorld({ pools: [shared(32)], clock: new ManualClock() });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("dead", 20).set("lives", 1);
    await blocks.pass();
    nodes.pods.set("dead", 19).set("lives", 0).set("needs", 1);
    let isFirst = true;
    await write(world, ({ node }) => {
      const recalledAt = node === "dead" && isFirst ? { recalledAt: world.clock.now() + YEAR } : {};
      if (node === "dead") isFirst = false;
      return recalledAt;
    });
    const asked = async () => {
      await blocks.pass();
      await world.settle();
      const all = (await world.all("block")).filter(({ record }) => record.recalledAt !== undefined);
      return all.map(({ record }) => record.node);
    };
    assert.deepEqual(await asked(), ["dead"]);
    world.clock.advance(20_000);
    assert.deepEqual(await asked(), ["dead", "lives"]);
  });

  it("cools no longer where it was a node's CIDR", async () => {
    const pools = [nodesPool("four", "10.244.0.0/21", 24, { cooldown: "30s" })];
    await using world = await openWorld({ pools, clock: new ManualClock() });
    const block = {
      cidr: "10.244.1.0/24",
      pool: "four",
      node: "gone",
      nodeUID: "u",
      holes: [],
      granted: true,
    };
    const releasedAt = world.clock.now() + YEAR;
    await world.realStore.create("block", { ...block, use: "PodCIDR", releasedAt });
    const by = cidrDistributor(world, new CidrNodes());
    for (const advance of [30_000, 0]) {
      await world.settle();
      assert.equal((await world.all("block")).length, 1);
      await by.pass();
      world.clock.advance(advance);
    }
    assert.deepEqual(await world.all("block"), []);
  });
});
