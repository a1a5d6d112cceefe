// SPDX-License-Identifier: Apache-2.0
// How many blocks of a pool are free, where nodes have some that are not the pool's any more.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openWorld, type World } from "../../test/support/world.ts";
import type { PoolRecord } from "../pool/pool.ts";
import { distributor, Nodes } from "./testing/block-nodes.ts";

function pool(length: number, over: Partial<PoolRecord["spec"]> = {}): PoolRecord {
  const ranges = [{ cidr: "10.0.0.0/24", from: "10.0.0.64", to: "10.0.0.79" }];
  return { name: "web", spec: { ranges, blockSize: { ipv4: length, ahead: 0 }, ...over } };
}

async function change(world: World, to: PoolRecord): Promise<void> {
  const seen = (await world.realStore.get("pool", "web")) ?? assert.fail();
  await world.realStore.replace("pool", seen, to);
  await world.settle();
}

describe("the free blocks of a pool", () => {
  for (const length of [30, 32])
    it(`of /${length} are granted to the last where addresses that a node has are reserved`, async () => {
      await using world = await openWorld({ pools: [pool(length)] });
      const nodes = new Nodes();
      const blocks = distributor(world, nodes);
      const size = 2 ** (32 - length);
      nodes.pods.set("node-a", 2 * size);
      await blocks.pass();
      await world.settle();
      const own = await world.all("block");
      for (const one of own) await world.realStore.reportBlock(one, { node: "node-a", used: size });
      await change(world, pool(length, { reserved: own.map(({ key }) => key) }));
      nodes.pods.set("node-b", 16 - 2 * size);
      assert.deepEqual(await blocks.pass(), []);
      assert.equal((await world.all("block")).length, 16 / size);
    });

  it("are all granted where a node has one outside the pool's ranges", async () => {
    await using world = await openWorld({ pools: [pool(30)] });
    const stray = { pool: "web", node: "node-a", nodeUID: "u", holes: [], granted: true };
    await world.realStore.create("block", { ...stray, cidr: "10.0.0.128/30" });
    await world.settle();
    const nodes = new Nodes();
    nodes.pods.set("node-b", 16);
    assert.deepEqual(await distributor(world, nodes).pass(), []);
    const theirs = (await world.all("block")).filter(({ record }) => record.node === "node-b");
    assert.equal(theirs.length, 4);
  });
});
