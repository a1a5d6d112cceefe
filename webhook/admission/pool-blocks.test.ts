// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Block } from "../../allocator/model/block.ts";
import { addrs, claimRecord, reservationsOf } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, poolObject, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Operation } from "../review/admission-review.ts";
import { validatePools } from "./validate-pool.ts";

const RANGES = [{ cidr: "10.20.0.0/24", gateway: "10.20.0.1" }, { cidr: "fd00:20::/64" }];
const SPEC = { ranges: RANGES, blockSize: { ipv4: 28, ipv6: 124 } };

/** What becomes of the review. */
async function said(world: World, spec: Json, operation: Operation = "CREATE", over = {}): Promise<string> {
  const decide = validatePools(world.admission);
  const object = poolObject("web", spec);
  const response = await decide(review(object, operation, over), new AbortController().signal);
  return response.allowed ? "" : deniedAs(response);
}

async function opened(...blocks: readonly Partial<Block>[]): Promise<World> {
  const world = await openWorld();
  assert.equal(await said(world, SPEC), "");
  for (const block of blocks) {
    const base = {
      cidr: "10.20.0.16/28",
      pool: "web",
      node: "node-a",
      nodeUID: "u",
      holes: [],
      granted: true,
    };
    await world.realStore.create("block", { ...base, ...block });
  }
  await world.settle();
  return world;
}

const UPDATE = "UPDATE";
const NEVER =
  "POOL_INVALID: spec.blockSize never changes, also from none: claims and nodes may have addresses of the pool as it was made; make another pool, in place of this one once that is deleted";
const leavesOut = (which: string) =>
  `POOL_IN_USE: pool web is in use: the change would leave out some of ${which}; list the addresses in spec.reserved, and leave them out once the nodes have given the blocks back`;

describe("a pool with blocks", () => {
  it("never has another size: not more, not less, not none, and none gets one", async () => {
    await using world = await opened();
    for (const blockSize of [{ ipv4: 27, ipv6: 124 }, { ipv4: 28 }, { ipv4: 28, ipv6: 125 }, undefined])
      assert.equal(await said(world, { ...SPEC, blockSize }, UPDATE), NEVER);
    assert.equal(await said(world, { ...SPEC, blockSize: { ipv6: 124, ipv4: 28 }, priority: 3 }, UPDATE), "");
    assert.equal(await said(world, { ...SPEC, blockSize: { ...SPEC.blockSize, ahead: 4 } }, UPDATE), "");
    const without = { ranges: [{ cidr: "10.30.0.0/24" }] };
    const oldObject = poolObject("web", without);
    const cut = { ...without, blockSize: { ipv4: 28 } };
    assert.equal(await said(world, cut, UPDATE, { oldObject }), NEVER);
  });

  it("has a block at least to give, of each family that it is cut in", async () => {
    await using world = await openWorld();
    assert.equal(
      await said(world, { ...SPEC, reserved: ["10.20.0.0/24"] }),
      "POOL_INVALID: spec.blockSize leaves no IPv4 block: every address is excluded, reserved or a gateway; leave some of them to nodes",
    );
    assert.equal(await said(world, { ...SPEC, blockSize: { ipv6: 124 }, reserved: ["10.20.0.0/24"] }), "");
  });

  it("keeps what nodes have: it does not shrink below that", async () => {
    await using world = await opened(
      { holes: ["10.20.0.16/31"] },
      { cidr: "10.20.0.32/28", node: "node-b", releasedAt: 1 },
      { cidr: "fd00:20::40/124", node: "node-b", granted: false },
    );
    const changed = (over: Json) => said(world, { ...SPEC, ...over }, UPDATE);
    const [four, six] = RANGES;
    const node = "10.20.0.16/28 (node-a)";
    assert.equal(await changed({ ranges: [{ ...four, to: "10.20.0.30" }, six] }), leavesOut(node));
    assert.equal(await changed({ ranges: [{ ...four, exclude: ["10.20.0.31"] }, six] }), leavesOut(node));
    assert.equal(await changed({ ranges: [{ ...four, gateway: "10.20.0.20" }, six] }), leavesOut(node));
    assert.equal(
      await changed({
        ranges: [
          { ...four, to: "10.20.0.9" },
          { ...six, from: "fd00:20::50" },
        ],
      }),
      leavesOut(`${node}, fd00:20::40/124 (node-b)`),
    );
    // its holes are nobody's, what cools is nobody's, and what is reserved is its owner's until it is given back
    assert.equal(await changed({ ranges: [{ ...four, exclude: ["10.20.0.17", "10.20.0.40"] }, six] }), "");
    assert.equal(await changed({ reserved: ["10.20.0.20"] }), "");
  });

  it("does not go while nodes have some", async () => {
    await using world = await opened({}, { cidr: "10.20.0.32/28", node: "node-b" });
    const removal = () => said(world, SPEC, "DELETE", { oldObject: poolObject("web", SPEC) });
    assert.equal(
      await removal(),
      "POOL_IN_USE: pool web is in use: nodes have 10.20.0.16/28 (node-a), 10.20.0.32/28 (node-b); set disabled: true and wait until the nodes have given them back",
    );
    const claim = claimRecord({ addresses: addrs("10.20.0.70") });
    for (const one of reservationsOf(claim))
      await world.realStore.create("reservation", { ...one, pool: "web" });
    await world.settle();
    assert.match(
      await removal(),
      /it still holds 10\.20\.0\.70 .*; pool web is in use: nodes have 10\.20\.0\.16\/28/,
    );
    for (const seen of await world.all("reservation")) await world.realStore.remove("reservation", seen);
    for (const seen of await world.all("block"))
      await world.realStore.replace("block", seen, { ...seen.record, releasedAt: 5 });
    await world.settle();
    assert.equal(await removal(), "");
  });
});
