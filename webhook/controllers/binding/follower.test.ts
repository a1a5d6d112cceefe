// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { noopLogger, noopMetrics } from "../../../allocator/base/ports.ts";
import { RecordCache } from "../../../allocator/cache/cache.ts";
import type { Store } from "../../../allocator/store/store.ts";
import type { KubeItem } from "../../../kube/api/resource.ts";
import { altered } from "../../../test/simulation/altered.ts";
import { ManualClock } from "../../../test/support/clock.ts";
import { DB_POOL } from "../../../test/support/fixtures.ts";
import { applied, type Json, pod } from "../../../test/support/objects.ts";
import { send } from "../../../test/support/reviewing.ts";
import { openWorld, type World } from "../../../test/support/world.ts";
import { observedPod } from "../../cluster-state/projections.ts";
import type { ControllerDeps } from "../controller.ts";
import { startBinder } from "./controller.ts";

/** Until a replica that does not lead has stepped in. */
const STEPS_IN_MS = 3_000;
const STEP_MS = 250;

/** What the watches of a replica have brought that hears of nothing more. */
async function heard(world: World): Promise<RecordCache> {
  const cache = new RecordCache(noopLogger);
  for (const kind of ["pool", "claim", "reservation", "block"] as const) {
    cache.apply(kind, { type: "relist" });
    for (const stored of await world.all(kind)) cache.apply(kind, { type: "put", stored });
    cache.apply(kind, { type: "synced" });
  }
  return cache;
}

function watching<T>(all: ReadonlyMap<string, T>) {
  return {
    ...{ isSynced: true, onChange: () => () => {}, by: () => [] },
    get: (key: string) => all.get(key),
    all: () => all.entries(),
  };
}

async function bindFor(world: World, cache: RecordCache, object: Json, leads: boolean): Promise<void> {
  const seen = observedPod(object as unknown as KubeItem);
  const inventory = {
    pod: async () => seen,
    workload: async () => undefined,
    fenced: async () => false,
    namespace: (name: string) => world.objects.namespace(name),
  };
  const deps = {
    ...{ context: { ...world.context, view: cache }, cache, metrics: noopMetrics },
    watches: { pods: watching(new Map([["shop/x", seen]])), nodes: watching(new Map()) },
    inventory: { cached: inventory, live: inventory },
    leadership: { leads: () => leads, onGain: () => () => {} },
    events: { record: () => {} },
  };
  const binder = startBinder(deps as unknown as ControllerDeps);
  for (let passed = 0; passed < STEPS_IN_MS; passed += STEP_MS) {
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    world.clock.advance(STEP_MS);
  }
  await binder.close();
}

/** How the writes to claims ended that were tried by a replica whose watch brings nothing, with or without a leader that has bound the claim. */
async function writesOf({ isBound }: { readonly isBound: boolean }): Promise<readonly string[]> {
  const writes: string[] = [];
  const wrap = (store: Store): Store =>
    altered(store, {
      replace: async (kind, seen, next) => {
        const result = await store.replace(kind, seen, next);
        if (kind === "claim") writes.push(result.kind);
        return result;
      },
    });
  await using world = await openWorld({ pools: [DB_POOL], clock: new ManualClock(), wrap });
  const object = pod("x", { annotations: { "berth.dev/ips": "10.20.0.70" } });
  const made = applied(object, await send(world, "/mutate/pods", object));
  const server = { uid: "ux", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
  const spec = { ...(made["spec"] as Json), nodeName: "n" };
  const scheduled = { ...made, spec, metadata: { ...(made["metadata"] as Json), ...server } };
  const before = await heard(world);
  if (isBound) await bindFor(world, before, scheduled, true);
  assert.deepEqual(writes.splice(0), isBound ? ["replaced"] : []);
  await bindFor(world, before, scheduled, false);
  const [claim] = await world.all("claim");
  assert.deepEqual([claim?.record.binding?.podUID, claim?.record.binding?.node], ["ux", "n"]);
  return writes;
}

describe("the binder of a replica that does not lead", () => {
  it("writes nothing where the leader has bound the claim, and its own watch is only late", async () => {
    assert.deepEqual(await writesOf({ isBound: true }), []);
  });

  it("binds what nobody has bound for two seconds", async () => {
    assert.deepEqual(await writesOf({ isBound: false }), ["replaced"]);
  });
});
