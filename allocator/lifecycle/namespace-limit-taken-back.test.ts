// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addrs, bindingTo, claimRecord, DB_POOL } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Claim } from "../model/claim.ts";
import type { Stored } from "../store/store.ts";
import { takenBack } from "./namespace-limit.ts";

const BEFORE = claimRecord({ addresses: addrs("10.20.0.71"), binding: bindingTo("mysql-0", "node-a") });
const CHANGED: Claim = { ...BEFORE, addresses: addrs("10.20.0.72"), admittedAt: 7 };

/** The claim as it was, and as a process has written it that is about to take that back. */
async function changed(world: World): Promise<{ before: Stored<"claim">; written: Stored<"claim"> }> {
  const { stored: before } = await world.realStore.create("claim", BEFORE);
  return { before, written: await write(world, before, CHANGED) };
}

async function write(world: World, seen: Stored<"claim">, next: Claim): Promise<Stored<"claim">> {
  const result = await world.realStore.replace("claim", seen, next);
  return result.kind === "replaced" ? result.stored : assert.fail();
}

const addressesOf = async (world: World, key: string) =>
  (await world.realStore.get("claim", key))?.record.addresses.join();

describe("a change that is beyond its namespace's limit", () => {
  it("is taken back as it was written, whatever was reported of the claim meanwhile", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { before, written } = await changed(world);
    await world.realStore.report(written, { message: "it waits" });
    assert.equal(await takenBack(world.context, written, before), "gone");
    assert.equal(await addressesOf(world, written.key), "10.20.0.71");
  });

  it("stays when another pod was bound to it, also where one was bound before", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { before, written } = await changed(world);
    await write(world, written, { ...CHANGED, binding: bindingTo("mysql-0", "node-a", { podUID: "next" }) });
    assert.equal(await takenBack(world.context, written, before), "kept");
    assert.equal(await addressesOf(world, written.key), "10.20.0.72");
  });

  it("stays when somebody went on from it in any other way", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { before, written } = await changed(world);
    await write(world, written, { ...CHANGED, retained: { since: 1, because: "scaled" } });
    assert.equal(await takenBack(world.context, written, before), "kept");
  });

  it("is left to whoever gives the claim back", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { before, written } = await changed(world);
    const releasing = await write(world, written, { ...CHANGED, releasing: true });
    assert.equal(await takenBack(world.context, written, before), "gone");
    assert.deepEqual(await world.realStore.get("claim", written.key), releasing);
  });

  it("goes with a claim that was made by it, unless a pod was bound to that", async () => {
    for (const [over, outcome] of [
      [{}, "gone"],
      [{ admittedAt: 9 }, "gone"],
      [{ binding: bindingTo("mysql-0", "node-b") }, "kept"],
    ] as const) {
      await using world = await openWorld({ pools: [DB_POOL] });
      const { binding: _, ...unbound } = CHANGED;
      const { stored } = await world.realStore.create("claim", unbound);
      await write(world, stored, { ...unbound, ...over });
      assert.equal(await takenBack(world.context, stored, undefined), outcome);
      const isThere = (await world.realStore.get("claim", stored.key)) !== undefined;
      assert.equal(isThere, outcome === "kept");
    }
  });
});
