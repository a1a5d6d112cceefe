// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopMetrics } from "../../allocator/base/ports.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import type { LeaderTerm } from "../../kube/controller/leader-election.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { entries, ordinalAllocation } from "../../test/support/allocation-requests.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { claimRecord, DB_POOL, granted } from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { startGcController } from "./gc-controller.ts";

/** Terms as a test wants them. */
class Terms {
  readonly #handlers = new Set<(term: LeaderTerm) => void>();
  #over = new AbortController();

  get listeners(): number {
    return this.#handlers.size;
  }

  onGain(handler: (term: LeaderTerm) => void): () => void {
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

async function openCollector(world: World, synced: Promise<void> = Promise.resolve()) {
  const terms = new Terms();
  const notes: string[] = [];
  const events = {
    record: ({ reason, regarding, note }: EventInput) =>
      void notes.push(`${reason} ${regarding.kind} ${regarding.name}: ${note}`),
  };
  const inventory = { cached: world.objects, live: world.objects };
  const deps = { context: world.context, inventory, leadership: terms, metrics: noopMetrics, events, synced };
  return { terms, notes, collector: startGcController(deps) };
}

/** A claim of ordinal 0 that nobody needs. */
async function forsaken(world: World): Promise<void> {
  granted(await reserve(world.context, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")), "pod"));
  await world.objects.keep(granted(readObject(workload("StatefulSet", "mysql"))));
  await world.objects.forget("StatefulSet", "shop", "mysql");
  await world.settle();
}

const HELD = { "shop/mysql-0": "10.20.0.70" };

describe("startGcController", () => {
  it("looks at everything when it comes to lead, and at nothing before", async () => {
    await using world = await openWorld({ pools: [DB_POOL], clock: new ManualClock() });
    const { terms, collector } = await openCollector(world);
    await forsaken(world);
    collector.enqueue(claimRecord());
    await eventLoopTurns(50);
    assert.deepEqual(await world.holdings(), HELD);
    terms.begin();
    await eventLoopTurns(50);
    assert.deepEqual(await world.holdings(), {});
    await collector.close();
  });

  it("waits until everything is loaded", async () => {
    await using world = await openWorld({ pools: [DB_POOL], clock: new ManualClock() });
    const synced = Promise.withResolvers<void>();
    const { terms, collector } = await openCollector(world, synced.promise);
    await forsaken(world);
    terms.begin();
    await eventLoopTurns(50);
    assert.deepEqual(await world.holdings(), HELD);
    synced.resolve();
    await eventLoopTurns(50);
    assert.deepEqual(await world.holdings(), {});
    await collector.close();
  });

  it("stops with its term, and goes on in the next one", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    const { terms, collector } = await openCollector(world);
    terms.begin();
    await eventLoopTurns();
    terms.end();
    await eventLoopTurns();
    assert.equal(clock.sleeping, 0);
    await forsaken(world);
    collector.enqueue(claimRecord());
    clock.advance(60_000);
    await eventLoopTurns(50);
    assert.deepEqual(await world.holdings(), HELD);
    terms.begin();
    await eventLoopTurns(50);
    assert.deepEqual(await world.holdings(), {});
    await collector.close();
  });

  it("judges a suspect at once while it leads", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    const { terms, collector } = await openCollector(world);
    terms.begin();
    await eventLoopTurns(50);
    await forsaken(world);
    await eventLoopTurns(50);
    assert.deepEqual(await world.holdings(), HELD);
    collector.enqueue(claimRecord());
    await eventLoopTurns(50);
    assert.deepEqual([await world.holdings(), clock.monotonic()], [{}, 0]);
    await collector.close();
  });

  it("tells at the claim which limit lets it go although it asks to be retained", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    const allocation = ordinalAllocation(world, "mysql-0", entries("10.20.0.70"));
    const retention = { ...allocation.retention, whenDeleted: "Retain" } as const;
    granted(await reserve(world.context, { ...allocation, retention }, "pod"));
    await world.objects.keep(granted(readObject(workload("StatefulSet", "mysql"))));
    await world.objects.forget("StatefulSet", "shop", "mysql");
    clock.advance(200_000);
    await world.settle();
    const { terms, notes, collector } = await openCollector(world);
    terms.begin();
    await eventLoopTurns(50);
    assert.deepEqual(notes, [
      "NotRetained IPClaim mysql-0: the claim is released although it asks to be retained: no pod ever had its addresses",
    ]);
    await collector.close();
  });

  it("ends for good when it is closed, also while it waits", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    const { terms, collector } = await openCollector(world, new Promise(() => {}));
    terms.begin();
    await collector.close();
    await collector.close();
    assert.deepEqual([terms.listeners, clock.sleeping], [0, 0]);
  });
});
