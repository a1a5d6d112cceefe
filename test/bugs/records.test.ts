// SPDX-License-Identifier: Apache-2.0
// Bugs that other IPAM systems had with their records (docs/reliability.md), on the allocator and its store in memory.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { type BindingEvidence, bind } from "../../allocator/lifecycle/bind.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { entries, podAllocation } from "../support/allocation-requests.ts";
import { assertClean, assertSound } from "../support/assert-audit.ts";
import { FailingStore } from "../support/failing-store.ts";
import { addr, DB_POOL, granted, poolRecord } from "../support/fixtures.ts";
import { deniedAs, type Json, pod, poolObject } from "../support/objects.ts";
import { createPod, send } from "../support/reviewing.ts";
import { openWorld, type World } from "../support/world.ts";

const LICENCE = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } });
const SMALL = poolRecord("small", "10.40.0.0/29", { cooldown: "1s" }); // 6 addresses
const NOT_OVER: () => Promise<BindingEvidence> = async () => ({ fenced: false, holdExpired: false });

async function claimOf(world: World, key: string): Promise<Stored<"claim">> {
  return (await world.realStore.get("claim", key)) ?? assert.fail(`no claim ${key}`);
}

/** The pod's sandbox came and went. */
async function runOnce(world: World, name: string, uid: string): Promise<void> {
  const key = `shop/${name}`;
  granted(await bind(world.context, key, { name, uid, node: "here", token: "" }, NOT_OVER));
  const attachment = {
    node: "here",
    containerID: "box",
    interface: "eth0",
    podUID: uid,
    since: 0,
    detached: true,
  };
  await world.store.report(await claimOf(world, key), { attachment });
  await world.settle();
}

/** What a process knows that has looked at its pools and at nothing else. */
async function stale(world: World): Promise<RecordCache> {
  const cache = new RecordCache(noopLogger);
  for (const kind of ["pool", "claim", "reservation"] as const) cache.apply(kind, { type: "relist" });
  for (const stored of await world.all("pool")) cache.apply("pool", { type: "put", stored });
  for (const kind of ["pool", "claim", "reservation"] as const) cache.apply(kind, { type: "synced" });
  return cache;
}

/** Processes that have just started and know nothing yet of each other's work. */
async function processes(world: World, count: number): Promise<readonly Context[]> {
  const contexts: Context[] = [];
  for (let i = 0; i < count; i++) contexts.push({ ...world.another(100 + i), view: await stale(world) });
  return contexts;
}

describe("bugs of others, in the records", () => {
  it("B1 a claim whose pod comes back while the garbage collector looks keeps its address", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const first = await createPod(world, LICENCE, "licence", "uid-1");
    await runOnce(world, "licence", "uid-1");
    await send(world, "/validate/pods", first, { operation: "DELETE" });
    let looks = 0;
    const inventory = Object.assign(Object.create(world.objects), {
      pod: async (namespace: string, name: string) => {
        const found = await world.objects.pod(namespace, name);
        if (++looks === 1) await createPod(world, LICENCE, "licence", "uid-2");
        return found;
      },
    });
    await new GarbageCollector(world.context, inventory).judgeClaim(await claimOf(world, "shop/licence"));
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
  });

  it("B2 a pod that waits to be scheduled keeps its claim", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, LICENCE, "licence");
    world.clock.advance(3_600_000);
    const collector = world.collector();
    for (let pass = 0; pass < 5; pass++) {
      await collector.pass();
      world.clock.advance(30_000);
    }
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
  });

  it("B5 a garbage collector that is behind does not free an address that its identity took back", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const allocation = () => podAllocation(world, "licence", entries("10.20.0.70"));
    granted(await reserve(world.context, allocation(), "pod"));
    await release(world.context, await claimOf(world, "shop/licence"));
    await world.settle();
    const behind = await stale(world);
    for (const stored of await world.all("reservation")) behind.apply("reservation", { type: "put", stored });
    granted(await reserve(world.context, allocation(), "pod"));
    world.clock.advance(3_600_000);
    await new GarbageCollector({ ...world.context, view: behind }, world.objects).pass();
    await assertClean(world);
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
  });

  it("B8 what a process remembers never takes an address from another", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const [one, other] = await processes(world, 2);
    assert.ok(one !== undefined && other !== undefined);
    granted(await reserve(one, podAllocation(world, "licence", entries("10.20.0.70")), "pod"));
    const got = await reserve(other, podAllocation(world, "imitator", entries("10.20.0.70")), "pod");
    assert.equal(got.kind === "refused" && got.code, "ADDRESS_TAKEN");
    await assertSound(world);
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
  });

  it("B12 a crash between two records leaks nothing and doubles nothing", async () => {
    for (const failure of ["before", "after"] as const) {
      let at = 1;
      while (await crashAt(at, failure)) at++;
      assert.equal(at, 4, "two reservations and a claim were each the last");
    }
  });

  /** Breaks off a reservation of two addresses at its n-th write, and lets three minutes pass; false: it has fewer. */
  async function crashAt(at: number, failure: "before" | "after"): Promise<boolean> {
    await using world = await openWorld({ pools: [DB_POOL] });
    const dying = new FailingStore(world.realStore, at, failure);
    const request = entries("10.20.0.70,fd00:20::70");
    await reserve(world.another(1, dying), podAllocation(world, "licence", request), "pod").catch(
      () => undefined,
    );
    if (!dying.died) return false;
    await world.settle();
    const collector = world.collector();
    for (let pass = 0; pass < 18; pass++) {
      world.clock.advance(10_000);
      await collector.pass();
      await world.settle();
    }
    await assertClean(world);
    assert.deepEqual([at, failure, (await world.all("reservation")).length], [at, failure, 0]);
    return true;
  }

  it("B14 500 reservations that a crash left are free again within 60 s", async () => {
    await using world = await openWorld({ pools: [poolRecord("big", "10.64.0.0/16")] });
    for (let i = 0; i < 500; i++) {
      const address = addr(`10.64.${i >> 8}.${i & 255 || 7}`);
      const claim = { namespace: "shop", name: `lost-${i}` };
      await world.realStore.create("reservation", { address, pool: "big", claim, nonce: `n${i}` });
    }
    await world.settle();
    const collector = world.collector();
    const began = world.clock.now();
    while (world.clock.now() - began < 60_000) {
      await collector.pass();
      world.clock.advance(10_000);
    }
    assert.equal((await world.all("reservation")).length, 0);
  });

  it("B15 eight processes that start at once never choose one address twice", async () => {
    await using world = await openWorld({ pools: [poolRecord("big", "10.64.0.0/24")] });
    const contexts = await processes(world, 8);
    const request = { pools: ["big"] };
    const reserving = contexts.flatMap((context, i) =>
      Array.from({ length: 20 }, async (_, n) => {
        const got = granted(await reserve(context, podAllocation(world, `pod-${i}-${n}`, request), "pod"));
        return got.claim.record.addresses.join();
      }),
    );
    const given = await Promise.all(reserving);
    assert.equal(new Set(given).size, 160);
    await world.settle();
    await assertClean(world);
  });

  it("B16 a pool over the addresses of another is refused", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const overlapping: Json = poolObject("late", { ranges: [{ cidr: "10.20.0.128/25" }] });
    const said = deniedAs(await send(world, "/validate/pools", overlapping));
    assert.match(said, /^POOL_OVERLAPS: pools late and db both contain 10\.20\.0\.129-10\.20\.0\.199/);
  });

  it("B17 a pool gives its last address, then says that it is full, and gives again what is let go", async () => {
    await using world = await openWorld({ pools: [SMALL] });
    const take = (name: string) =>
      reserve(world.context, podAllocation(world, name, { pools: ["small"] }), "pod");
    const given: string[] = [];
    for (let i = 0; i < 6; i++) {
      given.push(granted(await take(`pod-${i}`)).claim.record.addresses.join());
      await world.settle();
    }
    assert.equal(new Set(given).size, 6);
    const full = await take("late");
    assert.equal(full.kind === "refused" && full.code, "POOL_EXHAUSTED");
    for (const i of [0, 3, 5]) {
      await release(world.context, await claimOf(world, `shop/pod-${i}`));
      world.clock.advance(1_000);
      await world.collector().pass();
      await world.settle();
      assert.equal(granted(await take(`next-${i}`)).claim.record.addresses.join(), given[i]);
      await world.settle();
    }
    await assertClean(world);
  });

  it("B18 work that fails does not keep its key from those who come after it", async () => {
    const serial = new KeyedMutex();
    const failing = serial.run("shop/mysql-0", () => Promise.reject(new Error("disk")));
    let done = false;
    void serial.run("shop/mysql-0", async () => {
      done = true;
    });
    await assert.rejects(failing, /disk/);
    for (let i = 0; i < 10; i++) await turn();
    assert.equal(done, true);
  });
});
