// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { entries, slotsFor } from "../../test/support/allocation-requests.ts";
import { DB_POOL, granted, viewOf } from "../../test/support/fixtures.ts";
import { overlay } from "../../test/support/overlay.ts";
import type { World } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { allocateSlot } from "./slots.ts";
import { admit, detach, FOUR, opened, slotOf, start } from "./testing/slots.ts";

/** The claims that were read, all that were under way together in one text. */
function noting(world: World, corrupt = "") {
  const waves: string[][] = [];
  let wave: string[] | undefined;
  const { realStore } = world;
  const store = overlay(realStore, {
    get: async (kind, key) => {
      if (kind !== "claim") return await realStore.get(kind, key);
      if (wave === undefined) {
        wave = [];
        waves.push(wave);
        void nextTurn().then(() => {
          wave = undefined;
        });
      }
      wave.push(key);
      await nextTurn();
      if (key === corrupt) throw new BerthError("STATE_CORRUPT", "it does not decode");
      return await realStore.get(kind, key);
    },
  });
  return { context: { ...world.context, store }, waves };
}

describe("a set of fifty", () => {
  it("all in use is looked through many slots at a time, each of them once", async () => {
    await using world = await opened();
    const list = entries(Array.from({ length: 50 }, (_, i) => `10.20.0.${110 + i}`).join(";"));
    for (let i = 0; i < 50; i++) assert.equal(typeof (await admit(world, list)), "object");
    const { context, waves } = noting(world);
    assert.match(String(await admit(world, list, context)), /^SET_EXHAUSTED: all 50 entries/);
    assert.deepEqual(
      waves.map((wave) => wave.length),
      [1, 2, 4, 8, 16, 16, 3],
    );
    assert.equal(new Set(waves.flat()).size, 50);
  });

  it("allocates a slot before one whose claim cannot be read", async () => {
    await using world = await opened();
    assert.equal(await slotOf(world), "web-slot-0");
    const behind = viewOf({ pools: [DB_POOL] });
    const { context, waves } = noting(world, "shop/web-slot-2");
    const got = await admit(world, FOUR, { ...context, view: behind });
    assert.equal(typeof got === "string" ? got : got.slot, "web-slot-1");
    assert.deepEqual(waves, [["shop/web-slot-0"], ["shop/web-slot-1", "shop/web-slot-2"]]);
  });

  it("of which one slot is free costs the reads of that one", async () => {
    await using world = await opened();
    const list = entries(Array.from({ length: 50 }, (_, i) => `10.20.0.${110 + i}`).join(";"));
    const bound: { slot: string; token: string }[] = [];
    for (let i = 0; i < 50; i++) {
      const got = await admit(world, list);
      assert.ok(typeof got !== "string");
      bound.push(got);
      await start(world, `web-${i}`, got);
    }
    assert.equal(new Set(bound.map(({ slot }) => slot)).size, 50);
    await world.objects.forget("Pod", "shop", "web-37");
    await detach(world, "web-37", "web-slot-37");
    await world.settle();
    const read: string[] = [];
    const { realStore } = world;
    const store = overlay(realStore, {
      get: async (kind, key) => {
        if (kind === "claim") read.push(key);
        return await realStore.get(kind, key);
      },
    });
    const got = await allocateSlot({ ...world.context, store }, world.objects, slotsFor(world, list));
    assert.equal(granted(got).claim.record.name, "web-slot-37");
    assert.deepEqual(read, ["shop/web-slot-37"]);
  });
});
