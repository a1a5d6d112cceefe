// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { poolRecord, viewOf } from "../../test/support/fixtures.ts";
import { deniedAs, deploymentPod, type Json, pod, review, workload } from "../../test/support/objects.ts";
import { overlay } from "../../test/support/overlay.ts";
import { admitPod } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const POOL = poolRecord("web", "10.30.0.0/22");

function listOf(entries: number): Readonly<Record<string, string>> {
  const ips = Array.from({ length: entries }, (_, i) => `10.30.1.${i + 1}`).join(";");
  return { "berth.dev/ips": ips };
}

/** The review of a workload in a cluster: what comes of it, lists, claims and reservations that it read, and how many of that at a time. */
async function reviewed(world: World, object: Json, view: RecordReader = world.cache) {
  const { embedded: _, ...admission } = world.admission;
  const reads = { claim: 0, reservation: 0, pool: 0, block: 0 };
  let lists = 0;
  let now = 0;
  let together = 0;
  const store = overlay(world.realStore, {
    list: (kind, namespace) => {
      lists++;
      return world.realStore.list(kind, namespace);
    },
    get: async (kind, key) => {
      reads[kind]++;
      together = Math.max(together, ++now);
      await nextTurn();
      now--;
      return await world.realStore.get(kind, key);
    },
  });
  const handlers = createHandlers({ ...admission, context: { ...admission.context, store, view } });
  const request = review(object);
  const response = await handlers["/validate/workloads"](request, new AbortController().signal);
  await world.settle();
  const said = response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
  return { said, reads: [lists, reads.claim, reads.reservation], together };
}

/** Its rollouts need no more entries than it has replicas. */
const EXACT = { strategy: { type: "Recreate" } };

describe("the review of a workload", () => {
  it("lists the claims and reads a reservation for each entry of a new Deployment, many at a time", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const web = workload("Deployment", "web", { replicas: 24, annotations: listOf(30) });
    assert.deepEqual(await reviewed(world, web), { said: "", reads: [1, 0, 30], together: 16 });
  });

  it("lists the claims and reads a reservation for each ordinal of a new StatefulSet, by list and by pool", async () => {
    await using world = await openWorld({ pools: [POOL] });
    for (const annotations of [listOf(100), { "berth.dev/pools": "web" }]) {
      const set = workload("StatefulSet", "db", { replicas: 100, annotations });
      assert.deepEqual(await reviewed(world, set), { said: "", reads: [1, 0, 100], together: 16 });
    }
  });

  it("lets a Deployment be when only a review for a bare pod stands under the name of a slot, and says so", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const ghost = pod("web-slot-1", { annotations: { "berth.dev/ips": "10.30.2.9" } });
    assert.equal(await admitPod(world, ghost), "10.30.2.9");
    const web = workload("Deployment", "web", { replicas: 4, spec: EXACT, annotations: listOf(4) });
    const { said } = await reviewed(world, web);
    assert.equal(
      said,
      "claim shop/web-slot-1 is held for a Pod of that name that was not seen; the slot is free in 2 minutes, or when that pod is gone",
    );
    const made = [await admitPod(world, deploymentPod("web", { annotations: listOf(4) }))];
    made.push(await admitPod(world, deploymentPod("web", { annotations: listOf(4) })));
    assert.deepEqual(made, ["10.30.1.1", "10.30.1.3"]);
  });

  it("reads nothing of what the view shows", async () => {
    await using world = await openWorld({ pools: [POOL] });
    for (let i = 0; i < 10; i++) {
      const made = deploymentPod("web", { annotations: listOf(10) });
      assert.equal(await admitPod(world, made), `10.30.1.${i + 1}`);
    }
    const web = workload("Deployment", "web", { replicas: 8, annotations: listOf(10) });
    assert.deepEqual((await reviewed(world, web)).reads, [0, 0, 0]);
    const more = workload("Deployment", "web", { replicas: 8, annotations: listOf(12) });
    assert.deepEqual((await reviewed(world, more)).reads, [0, 2, 2]);
  });

  it("refuses what the store alone knows to be taken", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const web = workload("Deployment", "web", { annotations: listOf(3) });
    await admitPod(world, pod("other", { annotations: { "berth.dev/ips": "10.30.1.2" } }));
    const { said } = await reviewed(world, web, viewOf({ pools: [POOL] }));
    assert.match(said, /^ADDRESS_TAKEN: address 10\.30\.1\.2 in pool "web" is held by shop\/other/);
  });
});
