// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readObject } from "../../allocator/kube-object.ts";
import { unmetered } from "../../allocator/ports.ts";
import { reserve } from "../../allocator/reserve.ts";
import type { Term } from "../../kube/lease.ts";
import { turns } from "../../kube/testing/turns.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { claimRecord, DB_POOL, granted } from "../../test/support/fixtures.ts";
import { entries, ordinalIntent } from "../../test/support/intents.ts";
import { workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { startHousekeeper } from "./housekeeper.ts";

/** Terms as a test wants them. */
class Terms {
  readonly #handlers = new Set<(term: Term) => void>();
  #over = new AbortController();

  get listeners(): number {
    return this.#handlers.size;
  }

  onGain(handler: (term: Term) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  begin(): void {
    const over = new AbortController();
    this.#over = over;
    for (const handler of this.#handlers) handler({ signal: over.signal, holds: () => !over.signal.aborted });
  }

  end(): void {
    this.#over.abort();
  }
}

async function openHouse(world: World, synced: Promise<void> = Promise.resolve()) {
  const terms = new Terms();
  const inventory = { cached: world.shelf, live: world.shelf };
  const deps = { context: world.context, inventory, leadership: terms, metrics: unmetered, synced };
  return { terms, house: startHousekeeper(deps) };
}

/** A claim of ordinal 0 that nobody needs. */
async function forsaken(world: World): Promise<void> {
  granted(await reserve(world.context, ordinalIntent(world, "mysql-0", entries("10.20.0.70"))));
  await world.shelf.keep(granted(readObject(workload("StatefulSet", "mysql"))));
  await world.shelf.forget("StatefulSet", "shop", "mysql");
  await world.settle();
}

const HELD = { "shop/mysql-0": "10.20.0.70" };

describe("startHousekeeper", () => {
  it("looks at everything when it comes to lead, and at nothing before", async () => {
    await using world = await openWorld({ pools: [DB_POOL], clock: new ManualClock() });
    const { terms, house } = await openHouse(world);
    await forsaken(world);
    house.suspect(claimRecord());
    await turns(50);
    assert.deepEqual(await world.holdings(), HELD);
    terms.begin();
    await turns(50);
    assert.deepEqual(await world.holdings(), {});
    await house.close();
  });

  it("waits until everything is loaded", async () => {
    await using world = await openWorld({ pools: [DB_POOL], clock: new ManualClock() });
    const synced = Promise.withResolvers<void>();
    const { terms, house } = await openHouse(world, synced.promise);
    await forsaken(world);
    terms.begin();
    await turns(50);
    assert.deepEqual(await world.holdings(), HELD);
    synced.resolve();
    await turns(50);
    assert.deepEqual(await world.holdings(), {});
    await house.close();
  });

  it("stops with its term, and goes on in the next one", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    const { terms, house } = await openHouse(world);
    terms.begin();
    await turns();
    terms.end();
    await turns();
    assert.equal(clock.sleeping, 0);
    await forsaken(world);
    house.suspect(claimRecord());
    clock.advance(60_000);
    await turns(50);
    assert.deepEqual(await world.holdings(), HELD);
    terms.begin();
    await turns(50);
    assert.deepEqual(await world.holdings(), {});
    await house.close();
  });

  it("judges a suspect at once while it leads", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    const { terms, house } = await openHouse(world);
    terms.begin();
    await turns(50);
    await forsaken(world);
    await turns(50);
    assert.deepEqual(await world.holdings(), HELD);
    house.suspect(claimRecord());
    await turns(50);
    assert.deepEqual([await world.holdings(), clock.monotonic()], [{}, 0]);
    await house.close();
  });

  it("ends for good when it is closed, also while it waits", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    const { terms, house } = await openHouse(world, new Promise(() => {}));
    terms.begin();
    await house.close();
    await house.close();
    assert.deepEqual([terms.listeners, clock.sleeping], [0, 0]);
  });
});
