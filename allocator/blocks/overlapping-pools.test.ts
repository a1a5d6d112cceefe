// SPDX-License-Identifier: Apache-2.0
// Two pools that were made at the same moment may both stand, and a block may be left outside of a pool that was shortened.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { entries, podAllocation } from "../../test/support/allocation-requests.ts";
import {
  addr,
  granted as orThrow,
  parsed,
  poolRecord,
  refusalOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { isOwnedIn } from "../cache/block-index.ts";
import { dryRun } from "../demand/allocation-dry-run.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { blockAgainst, isInGrantedBlock } from "../lifecycle/block-conflict.ts";
import { reserve } from "../lifecycle/reserve.ts";
import type { PoolRecord } from "../pool/pool.ts";
import { grantBlock } from "./testing/grant-block.ts";
import { reserveAndBind } from "./testing/reserved-and-bound.ts";

const ORDERS = [
  ["a-fix", "z-blk"],
  ["fix", "blk"],
] as const;

/** One without blocks and one with, over the same addresses. */
function overlapping(fix: string, blk: string, length = 30): readonly [PoolRecord, PoolRecord] {
  return [poolRecord(fix, "10.0.0.0/28"), poolRecord(blk, "10.0.0.0/28", { blockSize: { ipv4: length } })];
}

async function grantTo(world: World, node: string, pool: PoolRecord): Promise<string> {
  const request = { family: "IPv4", node, nodeUID: "u" } as const;
  const got = await grantBlock(world.context, parsed(pool), request, new IntervalSet());
  await world.settle();
  return got?.key ?? assert.fail("no block is free");
}

const GRANTED = { node: "node-a", nodeUID: "u", holes: [], granted: true };

for (const [fix, blk] of ORDERS) {
  describe(`pool ${fix} of fixed addresses over pool ${blk} with blocks`, () => {
    const pools = overlapping(fix, blk);
    const asked = (world: World, name: string) => podAllocation(world, name, { pools: [fix] });

    it("gives no address that a node has in a block, and says so once there is no other", async () => {
      await using world = await openWorld({ pools });
      const nodes = ["node-a", "node-b", "node-c"];
      for (const node of nodes) await grantTo(world, node, pools[1]);
      const blocks = (await world.all("block")).map(({ record }) => record);
      const given: string[] = [];
      let last = "";
      for (let n = 0; last === ""; n++) {
        const got = await reserve(world.context, asked(world, `p-${n}`), "pod");
        if (got.kind === "refused") last = refusalOf(got);
        else given.push(...got.addresses);
        await world.settle();
      }
      assert.ok(given.length >= 2 && given.length <= 4, given.join());
      for (const address of given) assert.ok(!blocks.some((block) => isOwnedIn(block, addr(address))));
      assert.match(
        last,
        new RegExp(`^POOL_EXHAUSTED: no free IPv4 address in pool "${fix}": .*blocks of nodes`),
      );
    });

    it("refuses with block and node where the cache does not know of the block", async () => {
      await using world = await openWorld({ pools });
      for (let n = 0; n < 4; n++)
        await world.realStore.create("block", { ...GRANTED, cidr: `10.0.0.${n * 4}/30`, pool: blk });
      const behind = { ...world.context, view: viewOf({ pools }) };
      const got = await reserve(behind, asked(world, "p"), "pod");
      const words = `ADDRESS_TAKEN: address 10\\.0\\.0\\.\\d+ in pool "${fix}" is in block 10\\.0\\.0\\.\\d+/30 of node node-a`;
      assert.match(refusalOf(got), new RegExp(`^${words}`));
      const exact = await reserve(behind, podAllocation(world, "q", entries("10.0.0.6")), "pod");
      assert.match(
        refusalOf(exact),
        /^ADDRESS_TAKEN: address 10\.0\.0\.6 .* in block 10\.0\.0\.4\/30 of node node-a/,
      );
      assert.deepEqual([await world.all("claim"), await world.all("reservation")], [[], []]);
    });
  });
}

describe("a block outside of its pool", () => {
  const pools = [
    poolRecord("old", "10.0.9.0/24", { blockSize: { ipv4: 30 } }),
    poolRecord("new", "10.0.0.0/28"),
  ];

  it("keeps its addresses from the pool that they lie in now", async () => {
    await using world = await openWorld({ pools });
    await world.realStore.create("block", { ...GRANTED, cidr: "10.0.0.4/30", pool: "old" });
    await world.settle();
    const address = addr("10.0.0.5");
    assert.equal((await blockAgainst(world.context, address))?.cidr, "10.0.0.4/30");
    assert.equal(await isInGrantedBlock(world.context, address), true);
    assert.equal(await isInGrantedBlock(world.context, addr("10.0.0.8")), false);
    const words = /^ADDRESS_TAKEN: address 10\.0\.0\.5 .* in block 10\.0\.0\.4\/30 of node node-a/;
    const request = () => podAllocation(world, "p", entries(address));
    assert.match(refusalOf(await reserve(world.context, request(), "pod")), words);
    assert.match(refusalOf(await dryRun(world.context, request(), new Set())), words);
    orThrow(await reserve(world.context, podAllocation(world, "q", entries("10.0.0.8")), "pod"));
  });
});

describe("fixed addresses and grants of two pools over each other, at once", () => {
  it("never have an address both, whatever comes in between", async () => {
    const any = fc.record({
      seed: fc.nat(),
      acts: fc.array(fc.constantFrom("grant", "any", "exact"), { minLength: 2, maxLength: 14 }),
      length: fc.constantFrom(29, 30, 31, 32),
      order: fc.constantFrom(...ORDERS),
    });
    const property = fc.asyncProperty(any, async ({ seed, acts, length, order }) => {
      const pools = overlapping(order[0], order[1], length);
      await using world = await openWorld({ pools, seed });
      const cut = parsed(pools[1]);
      const work = acts.map(async (act, i) => {
        if (act === "grant") {
          const request = { family: "IPv4", node: `node-${i}`, nodeUID: "u" } as const;
          return void (await grantBlock(world.another(i), cut, request, new IntervalSet()));
        }
        const request = act === "any" ? { pools: [order[0]] } : entries(`10.0.0.${1 + ((seed + i) % 14)}`);
        await reserveAndBind(world, i, request);
      });
      await Promise.all(work);
      const blocks = (await world.all("block")).map(({ record }) => record);
      for (const { record } of await world.all("claim")) {
        for (const address of record.binding?.node === "n" ? record.addresses : []) {
          const owner = blocks.find((block) => block.granted === true && isOwnedIn(block, address));
          assert.equal(owner, undefined, `${address} is bound and in a block`);
        }
      }
    });
    await fc.assert(property, { numRuns: runsOf(200) });
  });
});
