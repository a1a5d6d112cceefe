// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { entries, ordinalAllocation } from "../../test/support/allocation-requests.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { eventually } from "../../test/support/eventually.ts";
import { attachmentOf, bindingTo, claimRecord, DB_POOL, granted } from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { noopMetrics } from "../base/ports.ts";
import { reserve } from "../lifecycle/reserve.ts";
import { readObject } from "../manifest/kubernetes-object.ts";
import type { Store, Stored } from "../store/store.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { startGcLoop } from "./gc-loop.ts";

/** Waits at every get until it is let through. */
class Gate {
  readonly asked: string[] = [];
  #open = Promise.withResolvers<void>();

  through(): void {
    this.#open.resolve();
  }

  wrap(store: Store): Store {
    return altered(store, {
      get: async (kind, key) => {
        this.asked.push(key);
        await this.#open.promise;
        return await store.get(kind, key);
      },
    });
  }
}

/** Lets others have their turn, as real ones do. */
class TurnsClock extends ManualClock {
  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms > 0) return await super.sleep(ms, signal);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function ordinals(world: World, ...names: readonly string[]): Promise<void> {
  for (const [n, name] of names.entries()) {
    granted(
      await reserve(world.context, ordinalAllocation(world, name, entries(`10.20.0.${70 + n}`)), "pod"),
    );
  }
  await world.settle();
}

/** mysql-0 runs there. */
async function boundTo({ realStore }: World, node: string): Promise<Stored<"claim">> {
  const seen = await realStore.get("claim", "shop/mysql-0");
  assert.ok(seen);
  const binding = bindingTo("mysql-0", node);
  const bound = await realStore.replace("claim", seen, { ...seen.record, binding });
  assert.ok(bound.kind === "replaced");
  return bound.stored;
}

/** mysql is deleted, and the sandbox of mysql-0 is up until it ends. */
async function setGone(world: World): Promise<{ end(): Promise<void> }> {
  await world.objects.keep(granted(readObject(workload("StatefulSet", "mysql"))));
  await ordinals(world, "mysql-0");
  const bound = await boundTo(world, "node-a");
  await world.settle();
  await world.objects.forget("StatefulSet", "shop", "mysql");
  return {
    async end() {
      await world.realStore.report(bound, { attachment: attachmentOf("mysql-0", { detached: true }) });
      await eventually("it is released", async () =>
        Object.keys(await world.holdings()).length === 0 ? true : undefined,
      );
    },
  };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe("the loop of the garbage collector", () => {
  it("judges a suspect without waiting for the next pass", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    await world.objects.keep(granted(readObject(workload("StatefulSet", "mysql"))));
    const loop = startGcLoop(world.context, world.collector(), noopMetrics);
    await ordinals(world, "mysql-0");
    await world.objects.forget("StatefulSet", "shop", "mysql");
    loop.enqueue(claimRecord());
    await eventually("it is released", async () =>
      Object.keys(await world.holdings()).length === 0 ? true : undefined,
    );
    assert.equal(clock.monotonic(), 0);
    await loop.close();
  });

  it("reads a suspect only if the view shows nothing that keeps it, and judges it again as soon as that changes", async () => {
    const reads: string[] = [];
    const clock = new ManualClock();
    const counted = (store: Store) =>
      altered(store, {
        get: async (kind, key) => {
          if (kind === "claim") reads.push(key);
          return await store.get(kind, key);
        },
      });
    await using world = await openWorld({ pools: [DB_POOL], clock, wrap: counted });
    const loop = startGcLoop(world.context, world.collector(), noopMetrics);
    const sandbox = await setGone(world);
    reads.length = 0;
    loop.enqueue(claimRecord());
    await turns();
    assert.deepEqual(reads, [], "its sandbox may be up");
    await sandbox.end();
    assert.equal(clock.monotonic(), 0);
    await loop.close();
  });

  it("judges a suspect again whose sandbox ends long after its pod is gone, without waiting for the next pass", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock });
    const loop = startGcLoop(world.context, world.collector(), noopMetrics);
    const sandbox = await setGone(world);
    loop.enqueue(claimRecord());
    await turns();
    clock.advance(60_000);
    await turns();
    await sandbox.end();
    assert.equal(clock.monotonic(), 60_000);
    await loop.close();
  });

  it("judges sixteen suspects at once, each of them once at a time, and ends after those at hand", async () => {
    const gate = new Gate();
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock, wrap: (store) => gate.wrap(store) });
    const loop = startGcLoop(world.context, new GarbageCollector(world.context, world.objects), noopMetrics);
    const names = Array.from({ length: 20 }, (_, n) => `mysql-${n}`);
    loop.enqueue(claimRecord({ name: "mysql-0" }));
    await new Promise((resolve) => setImmediate(resolve));
    for (const name of names) loop.enqueue(claimRecord({ name }));
    await new Promise((resolve) => setImmediate(resolve));
    const closed = loop.close();
    gate.through();
    await closed;
    assert.deepEqual(
      gate.asked,
      names.slice(0, 16).map((name) => `shop/${name}`),
    );
  });

  it("lets no claim whose judgement takes long keep more than one place, however often it is pointed out, and judges it once more", async () => {
    const gate = new Gate();
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [DB_POOL], clock, wrap: (store) => gate.wrap(store) });
    const loop = startGcLoop(world.context, new GarbageCollector(world.context, world.objects), noopMetrics);
    for (let n = 0; n < 20; n++) {
      loop.enqueue(claimRecord({ name: "mysql-0" }));
      await new Promise((resolve) => setImmediate(resolve));
    }
    loop.enqueue(claimRecord({ name: "mysql-1" }));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(gate.asked, ["shop/mysql-0", "shop/mysql-1"]);
    gate.through();
    await eventually("it is judged again", () => (gate.asked.length > 2 ? true : undefined));
    await loop.close();
    assert.deepEqual(gate.asked.slice(2), ["shop/mysql-0"]);
  });

  it("lets others have their turn while it judges thousands, as of a set that is scaled down", async () => {
    let asked = 0;
    const answered = (store: Store) =>
      altered(store, {
        get: async (kind, key) => {
          if (kind === "claim") asked++;
          return await store.get(kind, key);
        },
      });
    const clock = new TurnsClock();
    await using world = await openWorld({ pools: [DB_POOL], clock, wrap: answered });
    const loop = startGcLoop(world.context, world.collector(), noopMetrics);
    for (let n = 0; n < 1_000; n++) loop.enqueue(claimRecord({ name: `mysql-${n}` }));
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(asked <= 100, `${asked} in one go`);
    await eventually("all are judged", () => (asked === 1_000 ? true : undefined));
    await loop.close();
  });
});
