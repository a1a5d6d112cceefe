// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { claimRecord, DB_POOL, storedAs } from "../../test/support/fixtures.ts";
import { overlay } from "../../test/support/overlay.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { readingAhead } from "./read-ahead.ts";

/** A store that answers a turn later, and what was asked of it. */
function watched(world: World) {
  const read: string[] = [];
  let now = 0;
  let most = 0;
  const store = overlay(world.realStore, {
    list: (kind, namespace) => {
      read.push(`list ${kind} ${namespace}`);
      return world.realStore.list(kind, namespace);
    },
    get: async (kind, key) => {
      read.push(`${kind} ${key}`);
      most = Math.max(most, ++now);
      await nextTurn();
      now--;
      return await world.realStore.get(kind, key);
    },
  });
  return { store, read, most: () => most };
}

const addresses = (count: number) => Array.from({ length: count }, (_, i) => `10.20.0.${i}`);
const names = (count: number) => Array.from({ length: count }, (_, i) => `shop/a-${i}`);

describe("reading ahead", () => {
  it("asks for each record once, many at a time and not all", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { store, read, most } = watched(world);
    const all = addresses(100);
    const absent = await readingAhead(store, async (known) => {
      const found: string[] = [];
      for (const key of [...all, ...all])
        if ((await known.get("reservation", key)) === undefined) found.push(key);
      return found;
    });
    assert.equal(absent.length, 200);
    assert.deepEqual(
      read,
      all.map((key) => `reservation ${key}`),
    );
    assert.equal(most(), 16);
  });

  it("lists the claims of a namespace where many are asked for, and it has not more than a page of them", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await world.realStore.create("claim", claimRecord({ name: "a-2" }));
    const { store, read } = watched(world);
    const there = async (count: number) =>
      await readingAhead(store, async (known) => {
        const found: string[] = [];
        for (const key of names(count)) if ((await known.get("claim", key)) !== undefined) found.push(key);
        return found;
      });
    assert.deepEqual(await there(30), ["shop/a-2"]);
    assert.deepEqual(read.splice(0), ["list claim shop"]);
    assert.deepEqual(await there(3), ["shop/a-2"]);
    assert.deepEqual(read.splice(0), ["claim shop/a-0", "claim shop/a-1", "claim shop/a-2"]);
    for (let i = 0; i < 500; i++) await world.realStore.create("claim", claimRecord({ name: `b-${i}` }));
    assert.deepEqual(await there(30), ["shop/a-2"]);
    assert.equal(read.length, 31);
  });

  it("reads single claims of a namespace whose claims are too large for one answer, and lists no more of it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await world.realStore.create("claim", claimRecord({ name: "a-2" }));
    const { store, read } = watched(world);
    const found = await readingAhead({ ...store, listAtOnce: async () => undefined }, async (known) => {
      const all = await Promise.all(names(30).map((key) => known.get("claim", key)));
      return all.flatMap((stored) => stored?.key ?? []);
    });
    assert.deepEqual(found, ["shop/a-2"]);
    assert.deepEqual(
      read,
      names(30).map((key) => `claim ${key}`),
    );
  });

  it("decides by what is stored, not by what it guessed", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await world.realStore.create("claim", claimRecord({ name: "a-1" }));
    const { store, read } = watched(world);
    const found = await readingAhead(store, async (known) => {
      for (const key of names(3)) {
        const claim = await known.get("claim", key);
        if (claim !== undefined) return [key, (await known.get("reservation", "10.20.0.51"))?.key];
      }
      return [];
    });
    assert.deepEqual(found, ["shop/a-1", undefined]);
    assert.deepEqual(read.toSorted(), [
      "claim shop/a-0",
      "claim shop/a-1",
      "claim shop/a-2",
      "reservation 10.20.0.51",
    ]);
  });

  it("goes on one by one where each answer leads to the next question", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const chain = overlay(world.realStore, {
      get: async (kind, key) =>
        kind === "claim" ? (storedAs("claim", claimRecord({ name: `${key}x` })) as never) : undefined,
    });
    const last = await readingAhead(chain, async (known) => {
      let key = "";
      for (let step = 0; step < 40; step++) key = (await known.get("claim", key))?.record.name ?? "?";
      return key;
    });
    assert.equal(last, "x".repeat(40));
  });

  it("throws for a record that cannot be read where it counts, and only there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const unreadable = new BerthError("STATE_CORRUPT", "it does not decode");
    const corrupt = overlay(world.realStore, {
      get: async (_, key) => {
        if (key === "shop/a-1") throw unreadable;
        return undefined;
      },
      list: () => {
        throw unreadable;
      },
    });
    const until = (count: number) =>
      readingAhead(corrupt, async (known) => {
        for (const key of names(count)) await known.get("claim", key);
        return "decided";
      });
    assert.equal(await until(1), "decided");
    for (const count of [2, 20]) await assert.rejects(until(count), { code: "STATE_CORRUPT" });
  });

  it("does not believe a fault that comes of a guess", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await world.realStore.create("claim", claimRecord({ name: "a-0" }));
    const decided = await readingAhead(world.realStore, async (known) => {
      const claim = await known.get("claim", "shop/a-0");
      if (claim === undefined) throw new BerthError("INTERNAL", "it must be there");
      return claim.key;
    });
    assert.equal(decided, "shop/a-0");
  });
});
