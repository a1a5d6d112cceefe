// SPDX-License-Identifier: Apache-2.0
// What a pass passes over is what one over everything would find nothing to do about.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { altered } from "../../test/simulation/altered.ts";
import {
  attachmentOf,
  bindingTo,
  claimRecord,
  granted,
  reservationRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { statefulPod, workload } from "../../test/support/objects.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { readObject } from "../manifest/kubernetes-object.ts";
import type { ClusterState } from "../model/cluster-state.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { ORPHAN_GRACE_MS } from "./orphans.ts";
import { Happenings, POOL } from "./testing/happenings.ts";
import { NOTHING, pass } from "./testing/passes.ts";

/** Passes until nothing is left to do. */
async function passes(world: World, collector: GarbageCollector): Promise<void> {
  for (let n = 0; n < 8; n++) {
    const before = world.dump();
    if ((await pass(world, collector)) === NOTHING && world.dump() === before) return;
  }
  assert.fail("passes never end");
}

/** What happened during a pass. It may have seen what nobody else saw, so that what looks left behind does so for it from then on. */
async function during(world: World, collector: GarbageCollector, happenings: Happenings): Promise<string[]> {
  const happened: string[] = [];
  const underWay = collector.pass();
  for (let more = world.random.below(3); more > 0; more--) happened.push(await happenings.next());
  await underWay;
  await world.settle();
  await passes(world, collector);
  world.clock.advance(ORPHAN_GRACE_MS);
  return happened;
}

/** Everything is looked at in each pass, as nobody tells of changes. */
function lookingAtAll(world: World, state: ClusterState): GarbageCollector {
  return new GarbageCollector(world.context, altered(state, { onChange: undefined }));
}

describe("a pass over what is not settled", () => {
  for (let seed = 0; seed < runsOf(40, 4); seed++) {
    it(`leaves nothing for one over everything, whatever happens (seed ${seed})`, async () => {
      await using world = await openWorld({ pools: [POOL], seed });
      const happenings = new Happenings(world);
      const quick = new GarbageCollector(world.context, happenings.state);
      const whole = lookingAtAll(world, happenings.state);
      for (const one of [quick, whole]) await pass(world, one); // whoever looks for the first time goes by when records were made
      const happened: string[] = [];
      for (let n = 0; n < 250; n++) {
        happened.push(await happenings.next());
        if (world.random.below(3) > 0) continue;
        if (world.random.below(2) > 0) happened.push(...(await during(world, quick, happenings)));
        await passes(world, quick);
        const before = world.dump();
        const did = await pass(world, whole);
        const lately = happened.slice(-20).join(", ");
        assert.equal(did, NOTHING, `after ${n}: ${lately}`);
        assert.ok(world.dump() === before, `something was written after ${n}: ${lately}`);
      }
    });
  }
});

/** Ordinals of mysql, bound to pods that run. */
async function running(world: World, ordinals: number): Promise<void> {
  await world.objects.keep(granted(readObject(workload("StatefulSet", "mysql", { replicas: ordinals }))));
  for (let ordinal = 0; ordinal < ordinals; ordinal++) {
    const name = `mysql-${ordinal}`;
    const annotations = { "berth.dev/claim": name };
    const uid = `uid-of-${name}`;
    await world.objects.keep(granted(readObject(statefulPod("mysql", ordinal, { uid, annotations }))));
    const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal };
    const claim = claimRecord({
      ...{ name, identity, nonce: name, binding: bindingTo(name, "node-a") },
      addresses: [`10.20.0.${70 + ordinal}` as never],
      status: { attachment: attachmentOf(name) },
    });
    for (const one of reservationsOf(claim)) await world.realStore.create("reservation", one);
    await world.realStore.create("claim", claim);
  }
  await world.settle();
}

/** Which pods are asked for; `fenced` of all nodes; `meanwhile`: after a pod was looked up, and before anything is decided. */
function asking(
  world: World,
  is: { fenced: boolean; away?: boolean; leads?: boolean; meanwhile?: () => Promise<void> },
) {
  const asked: string[] = [];
  const state = altered<ClusterState>(world.objects, {
    pod: async (namespace, name) => {
      if (is.away === true) throw new BerthError("NOT_READY", "not loaded yet");
      asked.push(name);
      const seen = await world.objects.pod(namespace, name);
      await is.meanwhile?.();
      return seen;
    },
    fenced: async () => is.fenced,
  });
  const collector = new GarbageCollector(world.context, state, { mayWrite: () => is.leads ?? true });
  const after = async (ms: number) => {
    asked.length = 0;
    await pass(world, collector, ms);
    return asked.toSorted();
  };
  return { after, collector };
}

describe("claims of pods that run", () => {
  it("are looked at once, and again when their pod, their workload, their record or a reservation changes", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await running(world, 3);
    const { after } = asking(world, { fenced: false });
    const all = ["mysql-0", "mysql-1", "mysql-2"];
    assert.deepEqual(await after(0), all);
    assert.deepEqual(await after(10_000), []);
    await world.objects.keep(granted(readObject(statefulPod("mysql", 1, { uid: "uid-of-mysql-1" }))));
    assert.deepEqual([await after(10_000), await after(10_000)], [["mysql-1"], []]);
    await world.objects.keep(granted(readObject(workload("StatefulSet", "mysql", { replicas: 3 }))));
    assert.deepEqual([await after(10_000), await after(10_000)], [all, []]);
    const seen = await world.realStore.get("claim", "shop/mysql-2");
    assert.ok(seen);
    await world.realStore.replace("claim", seen, { ...seen.record, admittedAt: world.clock.now() });
    await world.settle();
    assert.deepEqual([await after(10_000), await after(10_000)], [["mysql-2"], []]);
    const lost = await world.realStore.get("reservation", "10.20.0.70");
    assert.ok(lost);
    await world.realStore.remove("reservation", lost);
    await world.settle();
    assert.deepEqual(await after(10_000), ["mysql-0"]);
  });

  it("are looked at when their node is fenced, and all of them every five minutes", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await running(world, 2);
    const is = { fenced: false };
    const { after } = asking(world, is);
    const all = ["mysql-0", "mysql-1"];
    assert.deepEqual([await after(0), await after(10_000)], [all, []]);
    is.fenced = true;
    assert.deepEqual(await after(10_000), all);
    is.fenced = false;
    assert.deepEqual([await after(10_000), await after(269_999), await after(1)], [[], [], all]);
  });

  it("have their nodes asked for together, so that what is away is waited for once", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await running(world, 2);
    const seen = await world.realStore.get("claim", "shop/mysql-1");
    assert.ok(seen);
    await world.realStore.replace("claim", seen, {
      ...seen.record,
      binding: bindingTo("mysql-1", "node-b"),
    });
    await world.settle();
    let [underWay, most] = [0, 0];
    const fenced = async () => {
      most = Math.max(most, ++underWay);
      await nextTurn();
      underWay--;
      return false;
    };
    const collector = new GarbageCollector(world.context, altered<ClusterState>(world.objects, { fenced }));
    await pass(world, collector);
    most = 0;
    await pass(world, collector, 10_000);
    assert.equal(most, 2);
  });

  it("are all looked at when a pool changes, those of a namespace when that does, and what lies in a node's new block", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await running(world, 2);
    const { after, collector } = asking(world, { fenced: false });
    const all = ["mysql-0", "mysql-1"];
    assert.deepEqual([await after(0), await after(10_000)], [all, []]);
    const seen = await world.realStore.get("pool", "db");
    assert.ok(seen);
    await world.realStore.replace("pool", seen, {
      ...seen.record,
      spec: { ...seen.record.spec, priority: 3 },
    });
    await world.settle();
    assert.deepEqual([await after(10_000), await after(10_000)], [all, []]);
    for (const [name, asked] of [
      ["shop", all],
      ["bank", []],
    ] as const) {
      const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
      await world.objects.keep(granted(readObject(namespace)));
      assert.deepEqual([await after(10_000), await after(10_000)], [asked, []]);
    }
    for (const [cidr, asked] of [
      ["10.20.0.128/25", []],
      ["10.20.0.71/32", ["mysql-1"]],
    ] as const) {
      const block = { cidr, pool: "db", node: "node-a", nodeUID: "", holes: [] };
      await world.realStore.create("block", block);
      await world.settle();
      assert.deepEqual(await after(10_000), asked);
    }
    collector.close();
  });

  it("are looked at again when they change while they are looked at", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await running(world, 1);
    const { realStore, objects } = world;
    const changes: readonly (() => Promise<unknown>)[] = [
      async () => {
        const seen = await realStore.get("claim", "shop/mysql-0");
        assert.ok(seen);
        await realStore.replace("claim", seen, { ...seen.record, admittedAt: world.clock.now() });
      },
      () => objects.keep(granted(readObject(workload("StatefulSet", "mysql", { replicas: 2 })))),
      async () => {
        const seen = await realStore.get("reservation", "10.20.0.70");
        assert.ok(seen);
        await realStore.remove("reservation", seen);
      },
      () => objects.forget("Pod", "shop", "mysql-0"),
    ];
    const is = { fenced: false, meanwhile: async () => {} };
    const { after } = asking(world, is);
    for (const change of changes) {
      is.meanwhile = async () => {
        is.meanwhile = async () => {};
        await change();
        await world.settle();
      };
      world.clock.advance(300_000);
      assert.deepEqual([await after(0), await after(10_000)], [["mysql-0"], ["mysql-0"]]);
    }
  });

  it("are looked at again when they could not be: nobody might write, or the pass broke off", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await running(world, 2);
    const is = { fenced: false, away: false, leads: false };
    const { after } = asking(world, is);
    const all = ["mysql-0", "mysql-1"];
    assert.deepEqual(await after(0), []);
    is.leads = true;
    is.away = true;
    await assert.rejects(after(10_000), BerthError);
    is.away = false;
    assert.deepEqual([await after(10_000), await after(10_000)], [all, []]);
  });
});

describe("records that are gone", () => {
  it("are looked for by no pass after one over everything, however many went since the last that was not", async (t) => {
    await using world = await openWorld({ pools: [POOL] });
    await running(world, 2);
    const { after } = asking(world, { fenced: false });
    await after(0);
    for (const kind of ["claim", "reservation"] as const)
      for (const seen of await world.all(kind)) await world.realStore.remove(kind, seen);
    await world.objects.keep(
      granted(readObject({ apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } })),
    );
    await world.settle();
    await after(0);
    const lookups = (["claim", "reservation"] as const).map((kind) => t.mock.method(world.cache, kind).mock);
    await after(10_000);
    assert.deepEqual(
      lookups.map((mock) => mock.callCount()),
      [0, 0],
    );
  });
});

describe("a reservation of a claim that is being given back", () => {
  it("and that it does not list any more is freed when the claim is gone", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await running(world, 1);
    const { realStore } = world;
    const dropped = reservationRecord("10.20.0.90", {
      nonce: "mysql-0",
      claim: { namespace: "shop", name: "mysql-0" },
    });
    await realStore.create("reservation", dropped);
    const seen = await realStore.get("claim", "shop/mysql-0");
    assert.ok(seen);
    const given = await realStore.replace("claim", seen, { ...seen.record, releasing: true });
    assert.equal(given.kind, "replaced");
    await world.settle();
    const is = { fenced: false, leads: false };
    const { after } = asking(world, is);
    await after(0); // while nobody may write
    is.leads = true;
    await after(10_000);
    for (const ms of [10_000, 10_000, 10_000, 10_000]) await after(ms);
    assert.equal(await realStore.get("reservation", "10.20.0.90"), undefined);
  });
});
