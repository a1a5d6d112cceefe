// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, reservationRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { MAX_ATTEMPTS, retryOnConflict } from "./retry-on-conflict.ts";
import type { Stored } from "./store.ts";

const ADDRESS = addr("10.20.0.70");
const CHANGE = { kind: "reservation", key: ADDRESS, doing: "it was marked" } as const;

/** Marks the reservation, after somebody else's writes. */
function marking({ store }: World, others: { count: number }) {
  return async (seen: Stored<"reservation"> | undefined) => {
    if (seen === undefined) return "gone";
    if (others.count > 0) {
      others.count--;
      await store.replace("reservation", seen, { ...seen.record, nonce: `n${others.count}` });
    }
    const { kind } = await store.replace("reservation", seen, { ...seen.record, marked: true });
    return kind === "replaced" ? "marked" : kind;
  };
}

describe("a change by compare-and-set", () => {
  it("is decided anew on what is stored after each conflict, and keeps what others wrote", async () => {
    await using world = await openWorld();
    await world.store.create("reservation", reservationRecord(ADDRESS));
    const others = { count: MAX_ATTEMPTS - 1 };
    assert.equal(await retryOnConflict(world.store, CHANGE, marking(world, others)), "marked");
    const { record } = (await world.store.get("reservation", ADDRESS)) ?? assert.fail();
    assert.deepEqual([record.marked, record.nonce], [true, "n0"]);
  });

  it("gives up on a record that keeps changing, and says which", async () => {
    await using world = await openWorld();
    await world.store.create("reservation", reservationRecord(ADDRESS));
    const others = { count: MAX_ATTEMPTS + 1 };
    await assert.rejects(retryOnConflict(world.store, CHANGE, marking(world, others)), {
      code: "REVISION_CONFLICT",
      message: "reservation 10.20.0.70 kept changing while it was marked",
      details: { address: "10.20.0.70" },
    });
    assert.equal(others.count, 1);
  });

  it("begins with what was seen, and reads when that is old", async () => {
    await using world = await openWorld();
    const made = await world.store.create("reservation", reservationRecord(ADDRESS));
    const step = marking(world, { count: 0 });
    const unread = { get: () => assert.fail("was read") };
    assert.equal(await retryOnConflict(unread, { ...CHANGE, seen: made.stored }, step), "marked");
    assert.equal(await retryOnConflict(world.store, { ...CHANGE, seen: made.stored }, step), "marked");
    assert.equal(await retryOnConflict(world.store, { ...CHANGE, key: "10.20.0.71" }, step), "gone");
  });
});
