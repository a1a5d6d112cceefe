// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { noopMetrics } from "../../allocator/base/ports.ts";
import { OUT_OF_SERVICE } from "../../allocator/manifest/node-fence.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { NODES, PODS, STATEFULSETS } from "../../kube/api/resource.ts";
import type { ClusterCaches } from "../../webhook/cluster-state/caches.ts";
import { type GcController, startGcController } from "../../webhook/controllers/gc-controller.ts";
import { startGcTriggers } from "../../webhook/controllers/gc-triggers.ts";
import { startLeadership } from "../../webhook/controllers/leadership.ts";
import { startWorkloads } from "../../webhook/controllers/statefulset-controller.ts";
import { eventually } from "../support/eventually.ts";
import { addrs, attachmentOf, bindingTo, claimRecord, DB_POOL, reservationsOf } from "../support/fixtures.ts";
import { hostDeps } from "../support/host-deps.ts";
import { LeapingClock } from "../support/leaping-clock.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { clear, installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { controllerDeps, openTestReplica, steadyLeadership } from "./replica-deps.ts";
import { change, forceDelete, makeNode, makePod, makeStatefulSet } from "./replica-objects.ts";
import { requestCounts } from "./request-counts.ts";
import { openControlPlane } from "./shared-plane.ts";

const TIMINGS = { durationMs: 3_000, renewDeadlineMs: 1_500, retryMs: 200 };
const shop = (name: string) => ({ namespace: "shop", name });

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  let plane: ControlPlane;
  before(async () => {
    plane = await openControlPlane();
    await installDefinitions(plane.connect());
    await makeNamespaces(plane.connect(), ["shop", "berth-system"]);
  });
  after(() => plane?.close());

  describe("who leads", () => {
    const candidate = (identity: string) => {
      const connection = plane.connect();
      const deps = { ...hostDeps(), timings: TIMINGS };
      const lease = { namespace: "berth-system", name: "berth-webhook" };
      const leadership = startLeadership({ connection, ...lease, identity, ...deps });
      return { connection, leadership };
    };

    it("is one of two, and the other one when it is killed", async () => {
      const candidates = [candidate("one"), candidate("two")] as const;
      const gains: string[] = [];
      try {
        for (const [i, { leadership }] of candidates.entries()) leadership.onGain(() => gains.push(`${i}`));
        const leader = await eventually("a leader", () => candidates.find((c) => c.leadership.leads()));
        const other = candidates[leader === candidates[0] ? 1 : 0];
        await pause(500);
        assert.deepEqual([other.leadership.leads(), gains.length], [false, 1]);
        leader.connection.close(); // it cannot even give the lease back
        await eventually("it steps down", () => (leader.leadership.leads() ? undefined : true));
        assert.equal(other.leadership.leads(), false);
        await eventually("the other one leads", () => other.leadership.leads() || undefined);
        assert.deepEqual(gains, leader === candidates[0] ? ["0", "1"] : ["1", "0"]);
      } finally {
        await Promise.all(candidates.map(({ leadership }) => leadership.close()));
      }
    });

    it("tells who comes late too, and nobody who does not listen any more", async () => {
      const { leadership } = candidate("three");
      try {
        const reported: string[] = [];
        leadership.onGain(() => reported.push("deaf"))();
        await eventually("it leads", () => leadership.leads() || undefined, 10_000);
        leadership.onGain(() => {
          throw new Error("no queue");
        });
        leadership.onGain(() => reported.push("late"));
        leadership.onGain(() => reported.push("left"))();
        assert.deepEqual(reported, []);
        await pause(0);
        assert.deepEqual(reported, ["late"]);
      } finally {
        await leadership.close();
      }
      assert.equal(leadership.leads(), false);
    });
  });

  describe("the garbage collector of a real cluster", () => {
    const clock = new LeapingClock();
    let replica: ClusterCaches;
    let gcLoop: GcController;
    let triggers: { close(): Promise<void> };
    const suspects: string[] = [];

    beforeEach(async () => {
      replica = await openTestReplica(plane.connect(), { clock });
      await replica.context.store.create("pool", DB_POOL);
    });
    afterEach(async () => {
      await triggers?.close();
      await gcLoop?.close();
      await replica.close();
      await clear(plane);
    });

    const start = () => {
      const { context, inventory, synced, cache, watches } = replica;
      const leadership = steadyLeadership();
      const events = { record: () => {} };
      gcLoop = startGcController({ context, inventory, synced, leadership, metrics: noopMetrics, events });
      const enqueueForGc = (claim: Claim) => {
        suspects.push(claim.name);
        gcLoop.enqueue(claim);
      };
      const workloads = startWorkloads(controllerDeps(replica, { enqueueForGc }));
      const pointsOut = [startGcTriggers({ cache, watches, clock, enqueueForGc }), workloads];
      triggers = { close: async () => void (await Promise.all(pointsOut.map((one) => one.close()))) };
    };

    /** The claim of ordinal 0 of that set, with the reservation, in use by the pod on the node. */
    const claim = async (
      set: string,
      address: string,
      where: { node: string; uid: string; detached: boolean },
    ) => {
      const { store } = replica.context;
      const name = `${set}-0`;
      const record = claimRecord({
        name,
        identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: set, ordinal: 0 },
        ...{ addresses: addrs(address), request: { addresses: addrs(address) } },
        binding: bindingTo(name, where.node, { podUID: where.uid }),
      });
      for (const reservation of reservationsOf(record)) await store.create("reservation", reservation);
      const created = await store.create("claim", record);
      const { node, uid: podUID, detached } = where;
      const attachment = attachmentOf(name, { node, podUID, detached });
      await store.report(created.stored, { attachment });
      await eventually("the claim is known", () =>
        replica.cache.claim(`shop/${name}`)?.record.status.attachment ? true : undefined,
      );
    };
    const stored = async (name: string) => (await replica.context.store.get("claim", `shop/${name}`))?.record;
    const released = async (name: string) =>
      await eventually(`${name} is released`, async () =>
        (await stored(name)) === undefined ? true : undefined,
      );

    it("releases a claim whose StatefulSet is deleted, and keeps one whose set is there", async () => {
      const connection = plane.connect();
      for (const set of ["stays", "goes"]) await makeStatefulSet(connection, shop(set));
      await eventually("both sets", () =>
        replica.watches.workloads[0]?.reflector.size === 2 ? true : undefined,
      );
      await claim("stays", "10.20.0.70", { node: "node-a", uid: "u", detached: true });
      await claim("goes", "10.20.0.71", { node: "node-a", uid: "u", detached: true });
      start();
      await forceDelete(connection, STATEFULSETS, shop("goes"));
      await released("goes-0");
      const cooling = await replica.context.store.get("reservation", "10.20.0.71");
      assert.equal(typeof cooling?.record.releasedAt, "number");
      assert.deepEqual((await stored("stays-0"))?.addresses, ["10.20.0.70"]);
      await forceDelete(connection, STATEFULSETS, shop("stays"));
      await released("stays-0");
    });

    it("keeps a claim of a pod that was deleted by force until its node is fenced", async () => {
      const connection = plane.connect();
      for (const node of ["node-t", "node-d"]) await makeNode(connection, node);
      const pods = { t: shop("tainted-0"), d: shop("deleted-0") };
      const tainted = await makePod(connection, pods.t, { node: "node-t" });
      const deleted = await makePod(connection, pods.d, { node: "node-d" });
      await claim("tainted", "10.20.0.70", { node: "node-t", uid: tainted.metadata.uid, detached: false });
      await claim("deleted", "10.20.0.71", { node: "node-d", uid: deleted.metadata.uid, detached: false });
      await claim("marker", "10.20.0.72", { node: "node-d", uid: "u", detached: true });
      await makeStatefulSet(connection, shop("marker"));
      await eventually("the watches", () =>
        replica.watches.workloads[0]?.reflector.get("shop/marker") && replica.watches.pods.size === 2
          ? true
          : undefined,
      );
      start();
      suspects.length = 0;
      for (const place of [pods.t, pods.d]) await forceDelete(connection, PODS, place);
      await eventually("both are suspected", () => (suspects.length === 2 ? true : undefined));
      // whoever is suspected later is judged later
      await forceDelete(connection, STATEFULSETS, shop("marker"));
      await released("marker-0");
      assert.equal((await stored("tainted-0"))?.status.attachment?.detached, false);
      assert.equal((await stored("deleted-0"))?.status.attachment?.detached, false);

      const taints = [{ key: OUT_OF_SERVICE, value: "nodeshutdown", effect: "NoExecute" }];
      await change(connection, NODES, { name: "node-t" }, { spec: { taints } });
      await released("tainted-0");
      assert.ok(await stored("deleted-0"));

      await forceDelete(connection, NODES, { name: "node-d" });
      await eventually("node-d is gone", () => (replica.watches.nodes.get("node-d") ? undefined : true));
      assert.equal(await replica.inventory.live.fenced("node-d"), false);
      assert.ok(await stored("deleted-0"));
      clock.skip(45_500);
      await released("deleted-0");
    });

    it("makes no call for claims that stay", async () => {
      const connection = plane.connect();
      await makeStatefulSet(connection, shop("mysql"), { replicas: 20 });
      await eventually("the set", () => replica.watches.workloads[0]?.reflector.get("shop/mysql"));
      const { store } = replica.context;
      for (let n = 0; n < 20; n++) {
        const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: n };
        const addresses = addrs(`10.20.0.${100 + n + 1}`);
        const record = claimRecord({ name: `mysql-${n}`, identity, addresses, nonce: `n${n}` });
        for (const reservation of reservationsOf(record)) await store.create("reservation", reservation);
        await store.create("claim", record);
      }
      await eventually("the claims are known", () =>
        [...replica.cache.claims()].length === 20 ? true : undefined,
      );
      const counts = async () => {
        const of = await requestCounts(connection);
        const resources = ["pods", "statefulsets", "nodes", "ipclaims", "ipreservations"];
        return resources.map((resource) => ["GET", "PATCH", "DELETE"].map((verb) => of({ resource, verb })));
      };
      const before = await counts();
      start();
      for (let pass = 0; pass < 5; pass++) await clock.leap(10_000);
      assert.deepEqual(await counts(), before);
    });
  });
}
