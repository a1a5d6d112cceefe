// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addr, DB_POOL, granted } from "../../test/support/fixtures.ts";
import { overlay } from "../../test/support/overlay.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Kind, Records, Store } from "../store/store.ts";
import { deleteOrphan } from "./orphan-mark.ts";
import { reserve } from "./reserve.ts";

const MARK_MS = 1_000;

/** Stamps records with whole seconds, as an API server does; `reads` gets the addresses of reservations that are read. */
function stamped(world: World, reads: string[], verbs: Partial<Store> = {}): Store {
  const { realStore: store } = world;
  const inSeconds = <S extends { readonly createdAt: number }>(stored: S): S => ({
    ...stored,
    createdAt: MARK_MS * Math.floor(stored.createdAt / MARK_MS),
  });
  return {
    ...overlay(store, {
      create: async <K extends Kind>(kind: K, record: Records[K]) => {
        const result = await store.create(kind, record);
        return { ...result, stored: inSeconds(result.stored) };
      },
      get: async <K extends Kind>(kind: K, key: string) => {
        if (kind === "reservation") reads.push(key);
        const stored = await store.get(kind, key);
        return stored && inSeconds(stored);
      },
      ...verbs,
    }),
    stampsSeconds: true,
  };
}

/** Runs `meanwhile` right before a claim is created. */
function beforeClaim(store: Store, meanwhile: () => Promise<void>): Store {
  return {
    ...overlay(store, {
      create: async <K extends Kind>(kind: K, record: Records[K]) => {
        if (kind === "claim") await meanwhile();
        return await store.create(kind, record);
      },
    }),
    ...(store.stampsSeconds && { stampsSeconds: true }),
  };
}

async function reserved(world: World, store: Store) {
  const allocation = podAllocation(world, "licence", entries("10.20.0.70"));
  return granted(await reserve({ ...world.context, store }, allocation, "pod"));
}

/** To the beginning of a second. */
function toSecond(world: World): void {
  world.clock.advance(MARK_MS - (world.clock.now() % MARK_MS));
}

describe("a reserver whose store stamps seconds", () => {
  it("reads nothing back if its claim is of the second of its reservations", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    toSecond(world);
    const reads: string[] = [];
    const store = beforeClaim(stamped(world, reads), async () => world.clock.advance(500));
    await reserved(world, store);
    assert.deepEqual(reads, []);
    await assertClean(world);
  });

  it("reads back if it took longer than half a second, whatever the stamps say of the beginnings", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    toSecond(world);
    const reads: string[] = [];
    const store = beforeClaim(stamped(world, reads), async () => world.clock.advance(501));
    await reserved(world, store);
    assert.deepEqual(reads, ["10.20.0.70"]);
  });

  it("reads back if its claim is of another second", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    toSecond(world);
    world.clock.advance(900);
    const reads: string[] = [];
    const store = beforeClaim(stamped(world, reads), async () => world.clock.advance(100));
    await reserved(world, store);
    assert.deepEqual(reads, ["10.20.0.70"]);
  });

  it("reads back where each writer's clock stamps", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const reads: string[] = [];
    const { stampsSeconds: _, ...store } = stamped(world, reads);
    await reserved(world, store);
    assert.deepEqual(reads, ["10.20.0.70"]);
  });

  it("has what it answers with, although its reservation was collected before its claim was there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    toSecond(world);
    let isCollected = false;
    const store = beforeClaim(stamped(world, []), async () => {
      const orphan = await world.realStore.get("reservation", "10.20.0.70");
      world.clock.advance(1_500);
      if (isCollected || orphan === undefined) return;
      isCollected = true;
      assert.equal(await deleteOrphan(world.context, orphan), "removed");
    });
    const { claim } = await reserved(world, store);
    assert.ok(isCollected);
    const there = await world.realStore.get("reservation", "10.20.0.70");
    assert.equal(there?.record.nonce, claim.record.nonce);
  });

  it("is not taken for broken off by another of its identity within its second, whatever that one does", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    toSecond(world);
    const reads: string[] = [];
    const inner = stamped(world, reads);
    let other: Promise<unknown> = Promise.resolve();
    const store = beforeClaim(inner, async () => {
      world.clock.advance(400);
      // sleeps between its rounds, in which this one goes on
      other = reserve(world.another(2, inner), podAllocation(world, "licence", entries("10.20.0.70")), "pod");
      await new Promise(setImmediate);
    });
    const { claim } = await reserved(world, store);
    assert.deepEqual(
      (await world.realStore.get("reservation", "10.20.0.70"))?.record.nonce,
      claim.record.nonce,
    );
    await other;
    await world.settle();
    await assertClean(world);
  });

  it("leaves what a crash left alone until it has met it for long enough, or it is old beyond doubt", async () => {
    for (const [age, waits] of [
      [0, 1_500],
      [5_000, 1_500],
      [9_000, 0],
    ] as const) {
      await using world = await openWorld({ pools: [DB_POOL] });
      toSecond(world);
      const key = { namespace: "shop", name: "licence" };
      const left = { address: addr("10.20.0.70"), pool: "db", claim: key, nonce: "left" };
      await world.realStore.create("reservation", left);
      world.clock.advance(age);
      const began = world.clock.monotonic();
      await reserved(world, stamped(world, []));
      const took = world.clock.monotonic() - began;
      assert.ok(took >= waits && took < waits + 500, `${age} ms old: ${took} ms`);
    }
  });
});
