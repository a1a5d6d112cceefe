// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Block } from "../model/block.ts";
import type { Stored } from "../store/store.ts";
import { endCooldown, giveBack } from "./give-back.ts";

const WEB = poolRecord("web", "10.0.0.0/28", { blockSize: { ipv4: 30 }, cooldown: "30s" });
const BLOCK: Block = {
  cidr: "10.0.0.4/30",
  pool: "web",
  node: "node-a",
  nodeUID: "u",
  holes: [],
  granted: true,
};

async function made(world: World, block = BLOCK): Promise<Stored<"block">> {
  return (await world.realStore.create("block", block)).stored;
}

describe("a block", () => {
  it("goes by its agent's word about this incarnation, or when its node is fenced, and by nothing else", async () => {
    await using world = await openWorld({ pools: [WEB] });
    const block = await made(world);
    assert.equal(await giveBack(world.context, block, { kind: "returned", uid: "of one before" }), "in use");
    assert.equal(await giveBack(world.context, block, { kind: "fenced", node: "node-b" }), "in use");
    assert.deepEqual(await world.all("block"), [block]);
    assert.equal(await giveBack(world.context, block, { kind: "returned", uid: block.uid }), "cooling");
    assert.equal(await giveBack(world.context, block, { kind: "fenced", node: "node-a" }), "changed");
  });

  it("cools for as long as its pool says, and then is anybody's", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [WEB], clock });
    assert.equal(
      await giveBack(world.context, await made(world), { kind: "fenced", node: "node-a" }),
      "cooling",
    );
    const [cooling] = await world.all("block");
    assert.ok(cooling);
    assert.equal(cooling.record.releasedAt, clock.now());
    assert.equal(await giveBack(world.context, cooling, { kind: "fenced", node: "node-a" }), "cooling");
    assert.equal(await endCooldown(world.context, cooling), "cooling");
    clock.advance(30_000);
    assert.equal(await endCooldown(world.context, cooling), "gone");
    assert.equal(await endCooldown(world.context, cooling), "changed");
    assert.deepEqual(await world.all("block"), []);
  });

  it("that was never granted goes at once, unless it was meanwhile", async () => {
    await using world = await openWorld({ pools: [WEB] });
    const { granted: _, ...bare } = BLOCK;
    const first = await made(world, bare);
    assert.equal(await giveBack(world.context, first, { kind: "returned", uid: "" }), "gone");
    const second = await made(world, bare);
    await world.realStore.replace("block", second, BLOCK);
    assert.equal(await giveBack(world.context, second, { kind: "returned", uid: "" }), "changed");
  });

  it("that is divided goes when nothing is within it, though another pool has an address beside its own", async () => {
    const clock = new ManualClock();
    const beside = poolRecord("beside", "10.0.0.7/32", { blockSize: { ipv4: 32 } });
    await using world = await openWorld({ pools: [WEB, beside], clock });
    const block = await made(world, { ...BLOCK, division: "all", releasedAt: clock.now() });
    const single = {
      cidr: "10.0.0.7/32",
      pool: "beside",
      node: "node-b",
      nodeUID: "v",
      holes: [],
      granted: true,
    };
    await made(world, single);
    const within = await made(world, { ...single, cidr: "10.0.0.5/32", pool: "web", within: block.key });
    clock.advance(30_000);
    assert.equal(await endCooldown(world.context, block), "divided");
    await world.realStore.remove("block", within);
    const seen = await world.realStore.get("block", block.key);
    assert.ok(seen);
    assert.equal(await endCooldown(world.context, seen), "gone");
  });
});
