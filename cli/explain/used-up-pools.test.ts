// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { choosePools } from "../../allocator/pool/pool-choice.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { usedUpFor } from "./used-up-pools.ts";

const RANGE = { cidr: "10.30.0.0/24", from: "10.30.0.8", to: "10.30.0.15" };
const POOL = {
  ...poolRecord("any", "10.30.0.0/24"),
  spec: { ranges: [RANGE], blockSize: { ipv4: 30 }, default: true },
};

async function granted(world: World, cidr: string, node: string, used: number): Promise<void> {
  const record = { cidr, pool: "any", node, nodeUID: "u", holes: [], granted: true };
  const made = await world.realStore.create("block", record);
  assert.equal(made.kind, "created");
  const done = await world.realStore.reportBlock(made.stored, { node, used });
  assert.equal(done.kind, "replaced");
}

describe("pools without an address for a pod of a node", () => {
  it("are those whose addresses are all in claims or in blocks, and of which the node itself uses what it has", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const said = async (node: string) => {
      const pools = world.cache.pools();
      const choice = choosePools(pools, {
        namespace: "a",
        namespaceLabels: {},
        podLabels: {},
        nodeLabels: {},
      });
      assert.ok(choice !== undefined && !isRefusal(choice));
      return await usedUpFor(world.realStore, choice, node);
    };
    await granted(world, "10.30.0.8/30", "node-a", 4);
    assert.equal(await said("node-a"), undefined, "another block is free");
    await granted(world, "10.30.0.12/30", "node-b", 3);
    assert.equal(
      await said("node-a"),
      'pool "any" has no free IPv4 address: 8 in blocks of nodes, 0 in claims, 0 cooling',
    );
    assert.equal(await said("node-b"), undefined, "it has one itself");
  });
});
