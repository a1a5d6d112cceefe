// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  anonymousAllocation,
  entries,
  ordinalAllocation,
  podAllocation,
} from "../../test/support/allocation-requests.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import {
  attachmentOf,
  bindingTo,
  claimRecord,
  granted,
  reservationRecord,
  viewOf,
} from "../../test/support/fixtures.ts";
import { pod, statefulPod, workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { reserve } from "../lifecycle/reserve.ts";
import { readObject } from "../manifest/kubernetes-object.ts";
import type { Request } from "../model/address-request.ts";
import type { Claim } from "../model/claim.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { NOTHING, POOLS, pass } from "./testing/passes.ts";

async function keep(world: World, object: unknown): Promise<void> {
  await world.objects.keep(granted(readObject(object)));
}

async function ordinal(world: World, request: Request = entries("10.20.0.70")): Promise<void> {
  granted(await reserve(world.context, ordinalAllocation(world, "mysql-0", request), "pod"));
  await world.settle();
}

/** The claim bound to a pod whose sandbox was seen to end, as after a deletion. */
async function used(world: World, key: string, podName: string): Promise<void> {
  const seen = await world.realStore.get("claim", key);
  assert.ok(seen);
  const bound = await world.realStore.replace("claim", seen, {
    ...seen.record,
    binding: bindingTo(podName, "node-a", { since: world.clock.now() }),
  });
  assert.ok(bound.kind === "replaced");
  const attachment = attachmentOf(podName, { detached: true });
  await world.realStore.report(bound.stored, { attachment });
  await world.settle();
}

async function claimOf(world: World, key = "shop/mysql-0"): Promise<Claim | undefined> {
  return (await world.realStore.get("claim", key))?.record;
}

describe("a pass", () => {
  it("does nothing to a claim that is needed", async () => {
    await using world = await openWorld({ pools: POOLS });
    await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
    await ordinal(world);
    await used(world, "shop/mysql-0", "mysql-0");
    const before = world.dump();
    const collector = world.collector();
    for (let n = 0; n < 5; n++) assert.equal(await pass(world, collector, 3_600_000), NOTHING);
    assert.equal(world.dump(), before);
  });

  it("releases when the owner is deleted, and frees the address after the cooldown", async () => {
    await using world = await openWorld({ pools: POOLS });
    await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
    await ordinal(world);
    await used(world, "shop/mysql-0", "mysql-0");
    await world.objects.forget("StatefulSet", "shop", "mysql");
    const collector = world.collector();
    assert.equal(await pass(world, collector), "0 orphans, 0 cooled, 1 released, 0 retained");
    assert.equal(await pass(world, collector, 29_999), NOTHING);
    assert.equal(await pass(world, collector, 1), "0 orphans, 1 cooled, 0 released, 0 retained");
    assert.deepEqual([await world.all("claim"), await world.all("reservation")], [[], []]);
  });

  it("frees an address whose pool is deleted while it cools as that pool said, also where others have it or it comes again", async () => {
    for (const after of [
      [],
      [{ name: "next", spec: { ranges: [{ cidr: "10.20.0.0/24" }], cooldown: "5s" } }],
    ]) {
      const [db = assert.fail()] = POOLS;
      await using world = await openWorld({ pools: [{ ...db, spec: { ...db.spec, cooldown: "10m" } }] });
      await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
      await ordinal(world);
      await world.objects.forget("StatefulSet", "shop", "mysql");
      assert.equal(await pass(world, world.collector()), "0 orphans, 0 cooled, 1 released, 0 retained");
      const pool = (await world.realStore.get("pool", "db")) ?? assert.fail();
      assert.equal((await world.realStore.remove("pool", pool)).kind, "removed");
      for (const next of after) await world.realStore.create("pool", next);
      await world.settle();
      const collector = world.collector(); // of another process, which did not know the pool
      assert.equal(await pass(world, collector, 599_999), NOTHING);
      assert.equal(await pass(world, collector, 1), "0 orphans, 1 cooled, 0 released, 0 retained");
    }
  });

  it("retains when scaled down, gives it back when scaled up, and forgets that it was set aside", async () => {
    await using world = await openWorld({ pools: POOLS });
    await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
    await ordinal(world);
    await used(world, "shop/mysql-0", "mysql-0");
    await keep(world, workload("StatefulSet", "mysql", { replicas: 0 }));
    const collector = world.collector();
    assert.equal(await pass(world, collector), "0 orphans, 0 cooled, 0 released, 1 retained");
    assert.deepEqual((await claimOf(world))?.retained, { since: world.clock.now(), because: "scaled" });
    assert.equal(await pass(world, collector, 1e9), NOTHING);
    await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
    assert.equal(await pass(world, collector), NOTHING);
    assert.equal((await claimOf(world))?.retained?.because, "scaled", "whatever binds it takes that away");
    assert.equal(await pass(world, collector, 30_000), NOTHING);
    assert.equal((await claimOf(world))?.retained, undefined);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.70" });
    await assertClean(world);
  });

  it("releases when scaled down with whenScaled Release, and what was retained when its ttl is over", async () => {
    await using world = await openWorld({ pools: POOLS });
    await keep(world, workload("StatefulSet", "mysql", { replicas: 0 }));
    await ordinal(world, { ...entries("10.20.0.70"), retention: { whenScaled: "Release" } });
    assert.equal(await pass(world, world.collector()), "0 orphans, 0 cooled, 1 released, 0 retained");
    world.clock.advance(30_000);
    const retention = { whenDeleted: "Retain" as const, ttlMs: 60_000 };
    granted(
      await reserve(
        world.context,
        podAllocation(world, "licence", { ...entries("10.20.0.71"), retention }),
        "pod",
      ),
    );
    await world.settle();
    await used(world, "shop/licence", "licence");
    const collector = world.collector();
    assert.equal(await pass(world, collector), "0 orphans, 1 cooled, 0 released, 1 retained");
    assert.equal(await pass(world, collector, 59_999), NOTHING);
    assert.equal(await pass(world, collector, 1), "0 orphans, 0 cooled, 1 released, 0 retained");
  });

  it("never releases under a pod that lives, or a sandbox that was not seen to end", async () => {
    await using world = await openWorld({ pools: POOLS });
    await ordinal(world, { ...entries("10.20.0.70"), retention: { whenScaled: "Release" } });
    await keep(world, workload("StatefulSet", "mysql", { replicas: 0 }));
    const annotations = { "berth.dev/claim": "mysql-0" };
    await keep(world, statefulPod("mysql", 0, { uid: "uid-of-mysql-0", annotations }));
    const collector = world.collector();
    assert.equal(await pass(world, collector, 1e9), NOTHING);
    const seen = await world.realStore.get("claim", "shop/mysql-0");
    assert.ok(seen);
    await world.realStore.replace("claim", seen, { ...seen.record, binding: bindingTo("mysql-0", "node-a") });
    await world.objects.forget("Pod", "shop", "mysql-0");
    await world.settle();
    assert.equal(await pass(world, collector, 1e9), NOTHING);
  });

  it("releases nothing under a pod that asks itself, which no review saw, as long as that waits for a node", async () => {
    await using world = await openWorld({ pools: POOLS });
    await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
    await ordinal(world);
    await used(world, "shop/mysql-0", "mysql-0");
    const annotations = { "berth.dev/sticky": "true" };
    await keep(world, statefulPod("mysql", 0, { uid: "uid-of-the-next", annotations }));
    const collector = world.collector();
    assert.equal(await pass(world, collector, 1e9), NOTHING, "the template does not ask");
    await world.objects.forget("StatefulSet", "shop", "mysql");
    assert.equal(await pass(world, collector, 1e9), NOTHING, "the StatefulSet is gone, its pods are not");
    await world.objects.forget("Pod", "shop", "mysql-0");
    assert.equal(await pass(world, collector), "0 orphans, 0 cooled, 1 released, 0 retained");
  });

  it("takes back what was reserved for a pod that never came, 120 s after its admission", async () => {
    await using world = await openWorld({ pools: POOLS });
    granted(await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), "pod"));
    granted(
      await reserve(world.context, anonymousAllocation(world, { pools: ["db"], families: ["IPv4"] }), "pod"),
    );
    await keep(world, pod("came", { annotations: { "berth.dev/claim": "came" } }));
    granted(await reserve(world.context, podAllocation(world, "came", entries("10.20.0.72")), "pod"));
    await world.settle();
    const collector = world.collector();
    assert.equal(await pass(world, collector, 119_999), NOTHING);
    assert.equal(await pass(world, collector, 1), "0 orphans, 0 cooled, 2 released, 0 retained");
    assert.deepEqual(await world.holdings(), { "shop/came": "10.20.0.72" });
  });

  it("keeps a claim made by hand, used or not", async () => {
    await using world = await openWorld({ pools: POOLS });
    await world.realStore.create("claim", claimRecord({ handMade: true }));
    await world.realStore.create("reservation", reservationRecord("10.20.0.70"));
    await world.settle();
    assert.equal(await pass(world, world.collector(), 1e9), NOTHING);
    await used(world, "shop/mysql-0", "mysql-0");
    assert.equal(await pass(world, world.collector(), 1e9), NOTHING);
  });

  it("collects an orphan on the second look, and a young claim's reservation never", async () => {
    await using world = await openWorld({ pools: POOLS });
    await keep(world, workload("StatefulSet", "mysql", { replicas: 1 }));
    await ordinal(world);
    await world.realStore.create("reservation", reservationRecord("10.20.0.90", { nonce: "left" }));
    await world.settle();
    const collector = world.collector();
    assert.deepEqual(
      [await pass(world, collector), await pass(world, collector, 29_999)],
      [NOTHING, NOTHING],
    );
    assert.equal(await pass(world, collector, 1), "1 orphans, 0 cooled, 0 released, 0 retained");
    await assertClean(world);
  });

  it("goes by the age that the store knows when the leader changes more often than the grace lasts", async () => {
    await using world = await openWorld({ pools: POOLS });
    const broken = claimRecord({ nonce: "lost its reservation", handMade: true });
    await world.realStore.create("claim", broken);
    await world.realStore.create("reservation", reservationRecord("10.20.0.90", { nonce: "left" }));
    await world.settle();
    const young = async () => {
      await world.realStore.create("reservation", reservationRecord("10.20.0.91", { nonce: "young" }));
      await world.settle();
    };
    const said: string[] = [];
    for (const afterMs of [10_000, 10_000, 10_000]) {
      said.push(await pass(world, world.collector(), afterMs));
      if (said.length === 1) await young();
    }
    assert.deepEqual(said, [NOTHING, NOTHING, "1 orphans, 0 cooled, 0 released, 0 retained"]);
    assert.equal((await world.realStore.get("reservation", "10.20.0.70"))?.record.nonce, broken.nonce);
    assert.deepEqual((await world.all("reservation")).map(({ key }) => key).includes("10.20.0.91"), true);
  });

  it("asks the authority again before it does anything", async () => {
    await using world = await openWorld({ pools: POOLS });
    await ordinal(world);
    // What the garbage collector sees is older than the store by a binding, an admission and a claim.
    const stale = viewOf({
      pools: POOLS,
      claims: [claimRecord({ name: "mysql-1", nonce: "n2", addresses: [] })],
      reservations: [reservationRecord("10.20.0.70", { nonce: "unseen" })],
    });
    await world.objects.forget("StatefulSet", "shop", "mysql");
    const collector = new GarbageCollector({ ...world.context, view: stale }, world.objects);
    const before = world.dump();
    for (let n = 0; n < 4; n++) await pass(world, collector, 60_000);
    assert.equal(world.dump(), before);
  });

  it("is not held up by a claim that cannot be judged", async () => {
    await using world = await openWorld({ pools: POOLS });
    for (const [name, address] of [
      ["broken", "10.20.0.70"],
      ["licence", "10.20.0.71"],
    ] as const) {
      granted(await reserve(world.context, podAllocation(world, name, entries(address)), "pod"));
    }
    await world.settle();
    const failing = Object.create(world.objects) as typeof world.objects;
    failing.pod = async (namespace, name) => {
      if (name === "broken") throw new Error("the informer is not ready");
      return await world.objects.pod(namespace, name);
    };
    const said: unknown[] = [];
    const log = { ...world.context.log, error: (...line: unknown[]) => void said.push(line) };
    const collector = new GarbageCollector({ ...world.context, log }, failing);
    assert.equal(await pass(world, collector, 120_000), "0 orphans, 0 cooled, 1 released, 0 retained");
    assert.deepEqual(said, [
      ["claim cannot be judged", { claim: "shop/broken", error: "the informer is not ready" }],
    ]);
  });
});
