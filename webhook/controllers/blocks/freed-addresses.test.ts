// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { openWorld } from "../../../test/support/world.ts";
import { web } from "../../testing/node-needs.ts";
import { FreedAddresses } from "./freed-addresses.ts";

const POOLS = [
  web({ blockSize: { ipv4: 30, ahead: 0 }, cooldown: "10m" }, "none", "10.0.0.0/24"),
  web({ blockSize: { ipv4: 30 }, cooldown: "10m" }, "ahead", "10.1.0.0/24"),
];
const having = (addresses: string, ended = false) => ({ addresses, ended });

async function opened() {
  const world = await openWorld({ pools: POOLS, clock: new ManualClock() });
  const block = { pool: "none", node: "a", nodeUID: "u", holes: [], granted: true };
  await world.realStore.create("block", { ...block, cidr: "10.0.0.4/30" });
  await world.realStore.create("block", { ...block, cidr: "10.1.0.4/30", pool: "ahead" });
  await world.settle();
  const freed = new FreedAddresses(world.clock, world.cache);
  const cooling = () => [...freed.cooling()].map((one) => one.join("/"));
  return { world, freed, cooling };
}

describe("an address that a pod had", () => {
  it("cools for as long as its pool says, once its pod has ended, is gone, or has another one", async () => {
    const { world, freed, cooling } = await opened();
    await using _ = world;
    freed.see(having("10.0.0.4"), { ended: false });
    assert.deepEqual(cooling(), []);
    freed.see(having("10.0.0.4", true), having("10.0.0.4"));
    assert.deepEqual(cooling(), ["none/IPv4/a"]);
    freed.see(having("10.0.0.5", true), undefined);
    assert.equal(cooling().length, 1, "nobody knows since when");
    world.clock.advance(300_000);
    freed.see(undefined, having("10.0.0.4", true)); // since it has ended
    freed.see(having("10.0.0.5", true), { ended: false });
    freed.see(having("10.0.0.7"), having("10.0.0.6"));
    assert.equal(cooling().length, 3);
    world.clock.advance(300_000);
    assert.equal(cooling().length, 2);
    world.clock.advance(300_000);
    assert.deepEqual(cooling(), []);
  });

  it("does not where another pod has it, nor outside of nodes' blocks, nor of a pool that nodes have blocks ahead of", async () => {
    const { world, freed, cooling } = await opened();
    await using _ = world;
    for (const address of ["10.0.0.4", "10.0.0.9", "10.1.0.4", "10.9.0.4", "of no family"])
      freed.see(undefined, having(address));
    assert.deepEqual(cooling(), ["none/IPv4/a"]);
    freed.see(having("10.0.0.4"), undefined);
    assert.deepEqual(cooling(), []);
    freed.see(undefined, having("10.0.0.4"));
    const [block] = await world.all("block");
    assert.ok(block);
    await world.realStore.replace("block", block, { ...block.record, releasedAt: 1 });
    await world.settle();
    assert.deepEqual(cooling(), []);
  });

  it("is forgotten when there are too many", async () => {
    const { world, freed } = await opened();
    await using _ = world;
    let asked = 0;
    const poolOf = () => {
      asked++;
      return world.cache.pool("none");
    };
    const many = new FreedAddresses(world.clock, { poolOf, blockOwning: () => undefined });
    for (let n = 0; n < 10_050; n++) many.see(undefined, having(`10.8.${n >> 8}.${n & 255}`));
    asked = 0;
    assert.deepEqual([...many.cooling(), ...freed.cooling()], []);
    assert.equal(asked, 10_000);
  });
});
