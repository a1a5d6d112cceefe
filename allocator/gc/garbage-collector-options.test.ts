// SPDX-License-Identifier: Apache-2.0
// A garbage collector of a cluster: its cached state may lag, it may have to leave the work to another process, records may be broken.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { entries, ordinalAllocation } from "../../test/support/allocation-requests.ts";
import {
  addrs,
  claimRecord,
  DB_POOL,
  granted,
  reservationRecord,
  reservationsOf,
  workloadFactsOf,
} from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { reserve } from "../lifecycle/reserve.ts";
import { readObject } from "../manifest/kubernetes-object.ts";
import type { Request } from "../model/address-request.ts";
import type { ClusterState } from "../model/cluster-state.ts";
import { GarbageCollector } from "./garbage-collector.ts";

const POOLS = [DB_POOL];

async function keep(world: World, object: unknown): Promise<void> {
  await world.objects.keep(granted(readObject(object)));
}

async function ordinal(world: World, request: Request = entries("10.20.0.70")): Promise<void> {
  granted(await reserve(world.context, ordinalAllocation(world, "mysql-0", request), "pod"));
  await world.settle();
}

async function pass(world: World, collector: GarbageCollector, afterMs = 0): Promise<string> {
  world.clock.advance(afterMs);
  const { orphans, cooled, released, retained } = await collector.pass();
  await world.settle();
  return `${orphans} orphans, ${cooled} cooled, ${released} released, ${retained} retained`;
}

const NOTHING = "0 orphans, 0 cooled, 0 released, 0 retained";

/** What lags behind: no pods, and a StatefulSet of so many replicas, or none. */
function wanting(replicas: number | undefined): ClusterState {
  return {
    pod: async () => undefined,
    namespace: async () => undefined,
    fenced: async () => false,
    workload: async (ref) => (replicas === undefined ? undefined : workloadFactsOf({ ...ref, replicas })),
  };
}

/** Writes down what is asked. */
function asking(inventory: ClusterState, asked: string[], then: () => void = () => {}): ClusterState {
  return {
    pod: async (namespace, name) => {
      asked.push(`pod ${name}`);
      return await inventory.pod(namespace, name);
    },
    workload: async (ref) => {
      asked.push(`${ref.kind} ${ref.name}`);
      then();
      return await inventory.workload(ref);
    },
    namespace: (name) => inventory.namespace(name),
    fenced: (node) => inventory.fenced(node),
  };
}

describe("a pass of a garbage collector in a cluster", () => {
  it("asks the authority only about claims that its hints would let go", async () => {
    await using world = await openWorld({ pools: POOLS });
    await ordinal(world);
    const asked: string[] = [];
    const live = asking(world.objects, asked);
    const collector = new GarbageCollector(world.context, live, { cachedState: wanting(1) });
    for (let n = 0; n < 3; n++) assert.equal(await pass(world, collector, 60_000), NOTHING);
    assert.deepEqual(asked, []);
    // the cached state lags behind: the workload is there, and it wants the ordinal
    await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
    const before = world.dump();
    const late = new GarbageCollector(world.context, live, { cachedState: wanting(undefined) });
    assert.equal(await pass(world, late), NOTHING);
    assert.deepEqual(asked, ["pod mysql-0", "StatefulSet mysql"]);
    assert.equal(world.dump(), before);
    await world.objects.forget("StatefulSet", "shop", "mysql");
    assert.equal(await pass(world, late), "0 orphans, 0 cooled, 1 released, 0 retained");
  });

  it("writes nothing from the moment at which it must leave that to another", async () => {
    await using world = await openWorld({ pools: POOLS });
    await ordinal(world);
    await world.realStore.create("reservation", reservationRecord("10.20.0.90", { nonce: "left" }));
    await world.realStore.create(
      "reservation",
      reservationRecord("10.20.0.91", { nonce: "l", releasedAt: 1 }),
    );
    await world.settle();
    let leads = true;
    const collector = new GarbageCollector(world.context, world.objects, { mayWrite: () => leads });
    await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
    assert.equal(await pass(world, collector), "0 orphans, 1 cooled, 0 released, 0 retained");
    await world.objects.forget("StatefulSet", "shop", "mysql");
    leads = false;
    const before = world.dump();
    assert.equal(await pass(world, collector, 60_000), NOTHING);
    assert.equal(world.dump(), before);
    leads = true;
    assert.equal(await pass(world, collector), "1 orphans, 0 cooled, 1 released, 0 retained");
  });

  it("lets go of nothing when it has to stop between its last look and the act", async () => {
    await using world = await openWorld({ pools: POOLS });
    await ordinal(world);
    await world.objects.forget("StatefulSet", "shop", "mysql");
    let leads = true;
    const live = asking(world.objects, [], () => {
      leads = false;
    });
    const before = world.dump();
    const collector = new GarbageCollector(world.context, live, {
      cachedState: wanting(undefined),
      mayWrite: () => leads,
    });
    await pass(world, collector, 60_000);
    assert.equal(world.dump(), before);
  });

  it("does not finish a release that another began when it must not write", async () => {
    await using world = await openWorld({ pools: POOLS });
    await world.realStore.create("claim", claimRecord({ releasing: true }));
    await world.settle();
    const before = world.dump();
    const collector = new GarbageCollector(world.context, world.objects, { mayWrite: () => false });
    const [hint] = [...world.context.view.claims()];
    assert.ok(hint);
    assert.deepEqual(await collector.judgeClaim(hint), { kind: "keep" });
    assert.equal(world.dump(), before);
  });

  it("is not held up by a reservation whose claim cannot be read", async () => {
    const corrupt = new BerthError("STATE_CORRUPT", "the IPClaim shop/broken cannot be read");
    await using world = await openWorld({
      pools: POOLS,
      wrap: (store) =>
        altered(store, {
          get: async (kind, key) => {
            if (key === "shop/broken") throw corrupt;
            return await store.get(kind, key);
          },
        }),
    });
    const of = (name: string) => ({ claim: { namespace: "shop", name }, nonce: "left" });
    await world.realStore.create("reservation", reservationRecord("10.20.0.90", of("broken")));
    await world.realStore.create("reservation", reservationRecord("10.20.0.91", of("gone")));
    await world.settle();
    const said: unknown[] = [];
    const log = { ...world.context.log, error: (...line: unknown[]) => void said.push(line) };
    const collector = new GarbageCollector({ ...world.context, log }, world.objects);
    await pass(world, collector);
    assert.equal(await pass(world, collector, 30_000), "1 orphans, 0 cooled, 0 released, 0 retained");
    assert.deepEqual(
      (await world.all("reservation")).map(({ key }) => key),
      ["10.20.0.90"],
    );
    assert.deepEqual(said, [
      ["orphaned reservation cannot be removed", { address: "10.20.0.90", error: corrupt.message }],
    ]);
  });

  it("is not held up by records that the store cannot write, or by owners that cannot be looked at", async () => {
    const fault = new BerthError("STORE_UNAVAILABLE", "failed calling webhook of namespace sick");
    const isSick = (key: string) => key.startsWith("sick/");
    await using world = await openWorld({
      pools: POOLS,
      wrap: (store) =>
        altered(store, {
          replace: async (kind, seen, next) => {
            if (isSick(seen.key)) throw fault;
            return await store.replace(kind, seen, next);
          },
        }),
    });
    for (const [namespace, name, address] of [
      ["sick", "a", "10.20.0.70"],
      ["sick", "b", "10.20.0.71"],
      ["shop", "c", "10.20.0.72"],
    ] as const) {
      const identity = { kind: "Pod", apiVersion: "v1", name };
      const claim = claimRecord({ namespace, name, nonce: name, addresses: addrs(address), identity });
      const retained = { since: world.clock.now(), because: "deleted" as const };
      await world.realStore.create(
        "claim",
        namespace === "sick" && name === "b" ? { ...claim, retained } : claim,
      );
      for (const one of reservationsOf(claim)) await world.realStore.create("reservation", one);
    }
    await world.realStore.create("reservation", reservationRecord("10.20.0.90", { nonce: "left" }));
    await world.realStore.create(
      "reservation",
      reservationRecord("10.20.0.91", { nonce: "l", releasedAt: 1 }),
    );
    await world.settle();
    const said: string[] = [];
    const error = (words: string, { claim }: { readonly claim?: unknown } = {}) =>
      void said.push(`${words} ${claim}`);
    const log = { ...world.context.log, error };
    const cachedState: ClusterState = {
      ...wanting(undefined),
      pod: async (namespace, name) => {
        if (isSick(`${namespace}/${name}`) && name === "b") throw fault;
        return undefined;
      },
    };
    const collector = new GarbageCollector({ ...world.context, log }, world.objects, { cachedState });
    assert.equal(await pass(world, collector, 120_000), "1 orphans, 1 cooled, 1 released, 0 retained");
    assert.equal(await pass(world, collector, 30_000), "0 orphans, 1 cooled, 0 released, 0 retained");
    assert.deepEqual(
      (await world.all("reservation")).map(({ key }) => key),
      ["10.20.0.70", "10.20.0.71"],
    );
    const each = ["claim cannot be judged sick/a", "owner of a retained claim cannot be looked at sick/b"];
    assert.deepEqual(said.sort(), [...each, ...each].sort(), "each once in a pass");
    await pass(world, collector, 5_000);
    assert.equal(said.length, 4, "it is left alone for a while, longer each time");
    await pass(world, collector, 5_000);
    assert.equal(said.length, 6);
    await pass(world, collector, 19_999);
    assert.equal(said.length, 6);
    await pass(world, collector, 1);
    assert.equal(said.length, 8);
  });

  it("has sixteen records' calls under way at once, and those of one record one after the other", async () => {
    const busy = new Set<string>();
    let most = 0;
    const alone = async <T>(key: string, call: () => Promise<T>): Promise<T> => {
      assert.ok(!busy.has(key), `${key} has a call under way`);
      busy.add(key);
      most = Math.max(most, busy.size);
      await new Promise((resolve) => setImmediate(resolve));
      busy.delete(key);
      return await call();
    };
    await using world = await openWorld({
      pools: POOLS,
      wrap: (store) =>
        altered(store, {
          get: (kind, key) => alone(key, () => store.get(kind, key)),
          replace: (kind, seen, next) => alone(seen.key, () => store.replace(kind, seen, next)),
          remove: (kind, seen) => alone(seen.key, () => store.remove(kind, seen)),
        }),
    });
    for (let n = 0; n < 60; n++) {
      const [name, address] = [`p${n}`, `10.20.0.${100 + n}`];
      const identity = { kind: "Pod", apiVersion: "v1", name };
      const claim = claimRecord({ name, nonce: name, addresses: addrs(address), identity });
      await world.realStore.create("claim", claim);
      for (const one of reservationsOf(claim)) await world.realStore.create("reservation", one);
    }
    await world.settle();
    const collector = new GarbageCollector(world.context, world.objects);
    assert.equal(await pass(world, collector, 120_000), "0 orphans, 0 cooled, 60 released, 0 retained");
    assert.equal(most, 16);
    most = 0;
    assert.equal(await pass(world, collector, 30_000), "0 orphans, 60 cooled, 0 released, 0 retained");
    assert.equal(most, 16);
    assert.deepEqual(await world.all("reservation"), []);
  });

  it("ends at once when the inventory is not loaded, or the store answers nothing", async () => {
    let away: BerthError | undefined;
    await using world = await openWorld({
      pools: POOLS,
      wrap: (store) =>
        altered(store, {
          get: async (kind, key) => {
            if (away !== undefined) throw away;
            return await store.get(kind, key);
          },
        }),
    });
    await ordinal(world);
    for (const code of ["STORE_UNAVAILABLE", "TIMED_OUT", "STORE_FULL", "STORE_READ_ONLY"] as const) {
      away = new BerthError(code, "no answer");
      const cachedState = wanting(undefined);
      await assert.rejects(new GarbageCollector(world.context, world.objects, { cachedState }).pass(), away);
    }
    away = undefined;
    const fault = new BerthError("NOT_READY", "not loaded yet");
    const cachedState = { ...wanting(1), workload: () => Promise.reject(fault) };
    await assert.rejects(new GarbageCollector(world.context, world.objects, { cachedState }).pass(), fault);
  });
});
