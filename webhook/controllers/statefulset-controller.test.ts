// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger, noopMetrics } from "../../allocator/base/ports.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { STATEFULSETS } from "../../kube/api/resource.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { altered } from "../../test/simulation/altered.ts";
import {
  DB_POOL,
  namespaceFacts,
  poolRecord,
  reservationRecord,
  storedAs,
} from "../../test/support/fixtures.ts";
import { type Json, workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { observedWorkload } from "../cluster-state/projections.ts";
import { startWorkloads } from "./statefulset-controller.ts";

const POOL = "cni.projectcalico.org/ipv4pools";
const LATE = '["late"]';

interface Asking {
  readonly replicas?: number;
  readonly template?: Readonly<Record<string, string>>;
  readonly namespace?: Readonly<Record<string, string>>;
}

/** The controller over one StatefulSet, of two pods if nothing is said; `told`: the events. */
function started(
  world: World,
  clock: ManualClock,
  { template = {}, namespace = {}, replicas = 2 }: Asking,
  told: EventInput[] = [],
) {
  const object: Json = workload("StatefulSet", "db", { uid: "u", replicas, annotations: template });
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
    context: { ...world.context, clock, log: noopLogger, dialects: OWN_OF_EACH },
    cache: world.cache,
    dialects: OWN_OF_EACH,
    watches: { namespaces: watchOf(new Map()), workloads: [sets] },
    inventory: { cached, live: cached },
    leadership: { leads: () => true, onGain: () => () => {} },
    events: { record: (event: EventInput) => void told.push(event) },
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

describe("a StatefulSet of which some ordinals meet a fault", () => {
  /** Of the ordinals from the first on. */
  const addresses = (count: number) => Array.from({ length: count }, (_, n) => `10.20.0.${70 + n}`);

  /** What it has, what was told and which addresses were tried, when these have met the fault for so many minutes. */
  async function after(fault: BerthError, sick: readonly string[], replicas = 10, minutes = 1) {
    const tried: string[] = [];
    await using world = await openWorld({
      pools: [DB_POOL],
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (!("address" in record && sick.includes(record.address)))
              return await store.create(kind, record);
            tried.push(record.address);
            throw fault;
          },
        }),
    });
    await world.settle();
    const clock = new ManualClock();
    const told: EventInput[] = [];
    const template = { "berth.dev/ips": `10.20.0.70-${addresses(replicas).at(-1)}` };
    const controller = started(world, clock, { replicas, template }, told);
    for (let n = 0; n < minutes; n++) await minute(clock);
    await controller.close();
    return { held: Object.keys(await world.holdings()), told, tried };
  }

  it("has the others' addresses, and tells whose record is broken", async () => {
    const words = "the IPReservation 10.20.0.70 cannot be read; correct or delete it";
    const { held, told } = await after(new BerthError("STATE_CORRUPT", words), ["10.20.0.70"]);
    assert.equal(held.length, 9);
    assert.ok(!held.includes("shop/db-0"));
    assert.deepEqual(
      told.map(({ type, reason, note }) => `${type} ${reason}: ${note}`),
      [`Warning StateCorrupt: pod db-0: ${words}`],
    );
  });

  it("has the others' addresses however many records are broken one after the other", async () => {
    const { held, told } = await after(new BerthError("STATE_CORRUPT", "broken"), addresses(7));
    assert.deepEqual(held.toSorted(), ["shop/db-7", "shop/db-8", "shop/db-9"]);
    assert.deepEqual(
      told.map(({ note }) => note),
      ["7 pods cannot have their addresses now; the first, pod db-0: broken"],
    );
  });

  it("tells that more may lack an address where nothing can be stored until somebody acts", async () => {
    const { told } = await after(new BerthError("STORE_READ_ONLY", "no role"), addresses(12), 12);
    assert.deepEqual(
      told.map(({ note }) => note),
      ["5 pods or more cannot have their addresses now; the first, pod db-0: no role"],
    );
  });

  it("tries again without an event what passes by itself", async () => {
    const sick = ["10.20.0.73", "10.20.0.75"];
    const { held, told, tried } = await after(new BerthError("STORE_UNAVAILABLE", "down"), sick);
    assert.deepEqual([held.length, told], [8, []]);
    assert.ok(tried.length > 4, `${tried.length} tries`);
  });

  it("does not ask for each ordinal where nothing can be stored", async () => {
    const { held, tried } = await after(new BerthError("TIMED_OUT", "down"), addresses(12), 12);
    assert.equal(held.length, 0);
    assert.deepEqual(tried.slice(0, 5), addresses(5));
    assert.ok(tried.length < 12 * 8, `${tried.length} tries`); // all in each of some 15 walks were 180
  });

  it("has the others' addresses also behind more store faults in a row than one walk goes on after", async () => {
    const { held } = await after(new BerthError("STORE_UNAVAILABLE", "answers with 500"), addresses(7));
    assert.deepEqual(held.toSorted(), ["shop/db-7", "shop/db-8", "shop/db-9"]);
  });

  it("is told of what should have passed by itself and has not, once a minute at most", async () => {
    const { told } = await after(
      new BerthError("STORE_UNAVAILABLE", "answers with 500"),
      addresses(7),
      10,
      4,
    );
    assert.ok(told.length >= 1 && told.length <= 3, `${told.length} events`);
    assert.match(
      told[0]?.note ?? "",
      /^\d pods (or more )?cannot have their addresses now; the first, pod db-\d: answers with 500$/,
    );
  });

  it("is told so once a minute at most where they meet now this and now that, and addresses are freed all the time", async () => {
    const clock = new ManualClock();
    let creates = 0;
    await using world = await openWorld({
      pools: [DB_POOL],
      wrap: (store) =>
        altered(store, {
          create: async () => {
            const isLate = Math.floor(creates++ / 5) % 2 === 1; // all that one walk meets
            throw new BerthError(isLate ? "TIMED_OUT" : "STORE_UNAVAILABLE", "no answer");
          },
        }),
    });
    await world.settle();
    const told: EventInput[] = [];
    const controller = started(world, clock, { replicas: 12, template: { "berth.dev/pools": "db" } }, told);
    for (let n = 0; n < 100; n++) {
      const released = reservationRecord(`10.20.0.${100 + n}`, { releasedAt: n });
      world.cache.apply("reservation", { type: "put", stored: storedAs("reservation", released) });
      for (let turn = 0; turn < 20; turn++) await nextTurn();
      clock.advance(3_000);
    }
    await controller.close();
    assert.ok(creates > 100, `${creates} tries`);
    assert.ok(told.length >= 1 && told.length <= 5, `${told.length} events in 5 minutes`);
  });

  it("is walked less and less often, also where it has more ordinals than are looked at in one go", async () => {
    const { held, tried } = await after(new BerthError("STATE_CORRUPT", "broken"), ["10.20.0.70"], 60);
    assert.equal(held.length, 58); // the pool is without its gateway
    assert.ok(tried.length < 20, `${tried.length} tries`);
  });
});
