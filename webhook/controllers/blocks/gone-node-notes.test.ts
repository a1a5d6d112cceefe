// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Block } from "../../../allocator/model/block.ts";
import { poolRecord } from "../../../test/support/fixtures.ts";
import { openWorld } from "../../../test/support/world.ts";
import { notesOfGoneNodes } from "./gone-node-notes.ts";

async function reported(blocks: readonly Partial<Block>[], ...nodes: readonly string[]) {
  const pools = [poolRecord("web", "10.0.0.0/24", { blockSize: { ipv4: 30 }, cooldown: "30s" })];
  await using world = await openWorld({ pools });
  for (const [n, block] of blocks.entries()) {
    const base = { cidr: `10.0.0.${n * 4}/30`, pool: "web", nodeUID: "u", holes: [], granted: true };
    await world.realStore.create("block", { ...base, node: "a", ...block });
  }
  await world.settle();
  return [...notesOfGoneNodes(world.cache, (node) => nodes.includes(node)).values()];
}

describe("blocks of nodes that are gone", () => {
  it("are told of with when they come back, pool by pool", async () => {
    assert.deepEqual(await reported([{}, {}], "a"), []);
    assert.deepEqual(await reported([{}, {}, { node: "b" }], "b"), [
      {
        pool: "web",
        note: "node a gone: 2 blocks (10.0.0.0/30, 10.0.0.4/30) given back 45s after that, and free after the pool's cooldown (30s)",
      },
    ]);
  });

  it("are told of again once they cool, and few are named of many", async () => {
    assert.deepEqual(await reported([{ releasedAt: 1 }], "b"), [
      { pool: "web", note: "node a gone: 1 block given back, and free after the pool's cooldown (30s)" },
    ]);
    const many = ["e", "d", "c", "b"].map((node) => ({ node }));
    const [{ note = "" } = {}] = await reported([...many, { node: "b", releasedAt: 1 }]);
    assert.equal(
      note,
      "nodes b, c, d and 1 more gone: 4 blocks (10.0.0.0/30, 10.0.0.4/30, 10.0.0.8/30 and 1 more) given back 45s after that, and free after the pool's cooldown (30s); 1 block given back, and free after the pool's cooldown (30s)",
    );
  });

  it("are none that are CIDRs of nodes", async () => {
    assert.deepEqual(await reported([{ use: "PodCIDR" }]), []);
  });
});
