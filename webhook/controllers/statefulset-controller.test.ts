// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { noopMetrics } from "../../allocator/base/ports.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { STATEFULSETS } from "../../kube/api/resource.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { namespaceFacts, poolRecord } from "../../test/support/fixtures.ts";
import { type Json, workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { observedWorkload } from "../cluster-state/projections.ts";
import { startWorkloads } from "./statefulset-controller.ts";

const POOL = "cni.projectcalico.org/ipv4pools";
const LATE = '["late"]';

interface Asking {
  readonly template?: Readonly<Record<string, string>>;
  readonly namespace?: Readonly<Record<string, string>>;
}

/** The controller over one StatefulSet of two pods. */
function started(world: World, clock: ManualClock, { template = {}, namespace = {} }: Asking) {
  const object: Json = workload("StatefulSet", "db", { uid: "u", replicas: 2, annotations: template });
  const seen = observedWorkload(STATEFULSETS, object as never);
  const watchOf = (all: ReadonlyMap<string, unknown>) => ({
    isSynced: true,
    get: (key: string) => all.get(key),
    all: () => all.entries(),
    onChange: () => () => {},
  });
  const cached = {
    pod: async () => undefined,
    workload: async () => seen.facts,
    namespace: async (name: string) => namespaceFacts(name, namespace),
    fenced: async () => false,
  };
  const sets = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    reflector: watchOf(new Map([["shop/db", seen]])),
  };
  return startWorkloads({
    context: { ...world.context, clock, dialects: OWN_OF_EACH },
    cache: world.cache,
    dialects: OWN_OF_EACH,
    watches: { namespaces: watchOf(new Map()), workloads: [sets] },
    inventory: { cached, live: cached },
    leadership: { leads: () => true, onGain: () => () => {} },
    events: { record() {} },
    metrics: noopMetrics,
    enqueueForGc() {},
  } as never);
}

/** Lets a minute pass, in which whoever waits for nothing but time has had its turn. */
async function minute(clock: ManualClock): Promise<void> {
  for (let second = 0; second < 60; second++) {
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    clock.advance(1_000);
  }
}

describe("a StatefulSet whose pool is made after it", () => {
  const cases: readonly (readonly [string, Asking])[] = [
    ["Berth's words", { template: { "berth.dev/pools": "late" } }],
    ["another system's words", { template: { [POOL]: LATE } }],
    ["another system's words beside Berth's", { template: { [POOL]: LATE, "berth.dev/ttl": "5m" } }],
    ["those of its namespace", { namespace: { [POOL]: LATE } }],
  ];
  for (const [what, asking] of cases) {
    it(`has its ordinals' addresses once the pool is there, which it asks for in ${what}`, async () => {
      await using world = await openWorld({ pools: [poolRecord("early", "10.1.0.0/24")] });
      await world.settle();
      const clock = new ManualClock();
      const controller = started(world, clock, asking);
      await minute(clock);
      assert.deepEqual(await world.holdings(), {});
      await world.realStore.create("pool", poolRecord("late", "10.2.0.0/24"));
      await world.settle();
      await minute(clock);
      const held = Object.entries(await world.holdings());
      assert.deepEqual(
        held.map(([key, address]) => [key, address.startsWith("10.2.0.")]),
        [
          ["shop/db-0", true],
          ["shop/db-1", true],
        ],
      );
      await controller.close();
    });
  }
});
