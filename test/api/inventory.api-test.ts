// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { FENCED, OUT_OF_SERVICE } from "../../allocator/manifest/node-fence.ts";
import { endOfOrdinals } from "../../allocator/model/ordinals.ts";
import { DEPLOYMENTS, NODES, PODS, STATEFULSETS } from "../../kube/api/resource.ts";
import { type ClusterCaches, openCaches } from "../../webhook/cluster-state/caches.ts";
import { eventually } from "../support/eventually.ts";
import { refTo } from "../support/fixtures.ts";
import { hostDeps } from "../support/host-deps.ts";
import { LeapingClock } from "../support/leaping-clock.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { openTestReplica } from "./replica-deps.ts";
import { installKruise } from "./replica-kruise.ts";
import {
  change,
  forceDelete,
  make,
  makeDeployment,
  makeNamespace,
  makeNode,
  makePod,
  makeStatefulSet,
  workloadSpec,
} from "./replica-objects.ts";
import { openControlPlane } from "./shared-plane.ts";

const IPS = { "berth.dev/ips": "10.20.0.51;10.20.0.52" };
const shop = (name: string) => ({ namespace: "shop", name });

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("what a replica knows of a real cluster", () => {
    let plane: ControlPlane;
    const clock = new LeapingClock();
    let replica: ClusterCaches;
    before(async () => {
      plane = await openControlPlane();
      await installDefinitions(plane.connect());
      await makeNamespace(plane.connect(), "shop", {
        labels: { team: "a" },
        annotations: { "berth.dev/pools": "db", other: "x" },
      });
      replica = await openTestReplica(plane.connect(), { clock });
    });
    after(async () => {
      await replica?.close();
      await plane?.close();
    });

    it("are pods, what Berth reads of them, and where they run", async () => {
      const connection = plane.connect();
      const { pods } = replica.watches;
      const annotations = { ...IPS, "berth.dev/claim": "mysql-0", other: "x".repeat(1_000) };
      const labels = { app: "mysql", "batch.kubernetes.io/job-completion-index": "0" };
      const made = await makePod(connection, shop("mysql-0"), { labels, annotations, node: "node-a" });
      const seen = await eventually("the pod is seen", () => pods.get("shop/mysql-0"));
      assert.deepEqual(seen, {
        ...{ namespace: "shop", name: "mysql-0", uid: made.metadata.uid, node: "node-a" },
        labels: { app: "mysql", "batch.kubernetes.io/job-completion-index": "0" },
        annotations: { ...IPS, "berth.dev/claim": "mysql-0" },
        ...{ up: false, ended: false, deleting: false, exempt: false },
      });
      await makePod(connection, shop("host"), { spec: { hostNetwork: true } });
      const host = await eventually("the pod of the host network", () => pods.get("shop/host"));
      assert.deepEqual([host.exempt, host.node], [true, ""]);
      assert.deepEqual(pods.by("node", "node-a"), [seen]);
      assert.deepEqual(await replica.inventory.live.pod("shop", "mysql-0"), seen);
      await forceDelete(connection, PODS, shop("mysql-0"));
      await eventually("the pod is gone", () => (pods.get("shop/mysql-0") === undefined ? true : undefined));
      assert.deepEqual(pods.by("node", "node-a"), []);
    });

    it("are workloads and namespaces, from the cache and live", async () => {
      const connection = plane.connect();
      const { cached, live } = replica.inventory;
      const spec = { ordinals: { start: 3 } };
      await makeStatefulSet(connection, shop("mysql"), { replicas: 2, annotations: IPS, spec });
      await makeDeployment(connection, shop("web"), { annotations: IPS });
      const set = await eventually("the set", () =>
        replica.inventory.cached.workload(refTo("StatefulSet", "mysql")),
      );
      assert.ok(typeof set === "object");
      const { uid, ...facts } = set;
      assert.match(uid, /^[-0-9a-f]{36}$/);
      assert.deepEqual(facts, {
        ...{ apiVersion: "apps/v1", kind: "StatefulSet", namespace: "shop", name: "mysql" },
        ...{ annotations: IPS, hostNetwork: false, replicas: 2, start: 3 },
      });
      assert.deepEqual(await live.workload(refTo("StatefulSet", "mysql")), set);
      const web = await eventually("the Deployment", () => cached.workload(refTo("Deployment", "web")));
      assert.deepEqual(await live.workload(refTo("Deployment", "web")), web);
      assert.equal(typeof web === "string" ? undefined : web.slots, 2);
      const namespace = await cached.namespace("shop");
      assert.deepEqual(namespace, {
        name: "shop",
        labels: { team: "a", "kubernetes.io/metadata.name": "shop" },
        annotations: { "berth.dev/pools": "db" },
      });
      assert.deepEqual(await live.namespace("shop"), namespace);
      for (const inventory of [cached, live]) {
        assert.equal(await inventory.workload(refTo("StatefulSet", "none")), undefined);
        assert.equal(await inventory.workload(refTo("DaemonSet", "mysql")), "unknown");
        assert.equal(await inventory.pod("shop", "none"), undefined);
        assert.equal(await inventory.namespace("none"), undefined);
      }
    });

    it("keeps of a workload what decides about its pods", async () => {
      await makeDeployment(plane.connect(), shop("kept"), { annotations: { ...IPS, other: "x" } });
      const { reflector } = replica.watches.workloads.find(({ kind }) => kind === "Deployment") ?? {};
      const kept = await eventually("the Deployment", () => reflector?.get("shop/kept"));
      assert.deepEqual(Object.keys(kept.object.spec.value), ["replicas", "strategy", "template"]);
      assert.deepEqual(kept.object.spec.at("template").value, {
        metadata: { labels: { app: "kept" }, annotations: IPS },
        spec: {},
      });
    });

    it("guesses nothing before it has seen everything", async () => {
      const connection = plane.connect();
      await makePod(connection, shop("early"));
      const young = await openCaches({ connection, ...hostDeps() });
      try {
        assert.deepEqual(young.ready(), { ready: false, reason: "records are not loaded" });
        const early = { code: "NOT_READY", message: "what is in the cluster is not loaded yet" };
        await assert.rejects(young.inventory.cached.pod("shop", "early"), early);
        await assert.rejects(young.inventory.cached.workload(refTo("StatefulSet", "mysql")), early);
        await assert.rejects(young.inventory.cached.fenced("node-x"), early);
        assert.equal((await young.inventory.live.pod("shop", "early"))?.name, "early");
        assert.equal((await young.inventory.admission.namespace("shop"))?.name, "shop");
        await young.synced;
        assert.deepEqual(young.ready(), { ready: true, reason: "" });
        assert.equal((await young.inventory.cached.pod("shop", "early"))?.name, "early");
      } finally {
        await young.close();
      }
    });

    it("asks the API server at admission for what the watches do not have", async () => {
      const connection = plane.connect();
      const blind = await openTestReplica(connection);
      await blind.close();
      await makeStatefulSet(connection, shop("late"));
      await makeNamespace(connection, "late", {});
      await makePod(connection, shop("late-0"));
      const { cached, admission } = blind.inventory;
      assert.equal(await cached.workload(refTo("StatefulSet", "late")), undefined);
      const late = await admission.workload(refTo("StatefulSet", "late"));
      assert.equal(typeof late === "string" ? late : late?.name, "late");
      assert.equal((await admission.namespace("late"))?.name, "late");
      assert.equal((await admission.pod("shop", "late-0"))?.name, "late-0");
      // what the watches have is not asked for again
      await change(connection, STATEFULSETS, shop("mysql"), { spec: { replicas: 9 } });
      const known = await admission.workload(refTo("StatefulSet", "mysql"));
      assert.equal(typeof known === "string" ? known : known?.replicas, 2);
    });

    it("throws when the API server cannot say", async () => {
      const connection = plane.connect();
      const cut = await openTestReplica(connection);
      await cut.close();
      connection.close();
      const { live } = cut.inventory;
      const failed = { code: "STORE_UNAVAILABLE" };
      await assert.rejects(live.pod("shop", "none"), failed);
      await assert.rejects(live.workload(refTo("StatefulSet", "none")), failed);
      await assert.rejects(live.fenced("node-x"), failed);
    });

    it("says that a node is fenced by its taint, an operator's word, or its deletion once the grace is over", async () => {
      const connection = plane.connect();
      const { cached, live } = replica.inventory;
      const fenced = async (node: string) => [await cached.fenced(node), await live.fenced(node)];
      const becomes = async (node: string, expected: readonly boolean[]) =>
        await eventually(`${node} is ${expected}`, async () =>
          `${await fenced(node)}` === `${expected}` ? true : undefined,
        );
      for (const node of ["node-t", "node-o", "node-d"]) {
        await makeNode(connection, node);
        await eventually(node, () => replica.watches.nodes.get(node));
        assert.deepEqual(await fenced(node), [false, false]);
      }
      assert.deepEqual(await fenced(""), [false, false]);
      const taints = [{ key: OUT_OF_SERVICE, value: "nodeshutdown", effect: "NoExecute" }];
      await change(connection, NODES, { name: "node-t" }, { spec: { taints } });
      await becomes("node-t", [true, true]);
      await change(
        connection,
        NODES,
        { name: "node-o" },
        { metadata: { annotations: { [FENCED]: "true" } } },
      );
      await becomes("node-o", [true, true]);
      await change(
        connection,
        NODES,
        { name: "node-o" },
        { metadata: { annotations: { [FENCED]: "false" } } },
      );
      await becomes("node-o", [false, false]);

      await forceDelete(connection, NODES, { name: "node-d" });
      await eventually("node-d is gone", () => (replica.watches.nodes.get("node-d") ? undefined : true));
      assert.deepEqual(await fenced("node-d"), [false, false]);
      clock.skip(44_000);
      assert.deepEqual(await fenced("node-d"), [false, false]);
      clock.skip(1_000);
      assert.deepEqual(await fenced("node-d"), [true, true]);
      // another process has not seen it absent for so long
      const other = await openTestReplica(connection);
      assert.deepEqual(
        [await other.inventory.cached.fenced("node-d"), await other.inventory.live.fenced("node-d")],
        [false, false],
      );
      await other.close();
      await makeNode(connection, "node-d");
      assert.equal(await live.fenced("node-d"), false);
      await becomes("node-d", [false, false]);
      await forceDelete(connection, NODES, { name: "node-d" });
      await eventually("node-d is gone again", () =>
        replica.watches.nodes.get("node-d") ? undefined : true,
      );
      assert.deepEqual(await fenced("node-d"), [false, false]);
    });

    it("finds OpenKruise's workloads once they are served", async () => {
      const connection = plane.connect();
      const { cached, live } = replica.inventory;
      const [kruises, clones] = await installKruise(connection, "clonesets");
      const place = shop("kruise");
      assert.equal(
        await cached.workload(refTo("StatefulSet", "kruise", "apps.kruise.io/v1beta1")),
        undefined,
      );
      // the group is there and the kind is not: it may be of a version that is not known here
      assert.equal(await live.workload(refTo("StatefulSet", "kruise", "apps.kruise.io/v1beta1")), "unknown");
      await installKruise(connection, "statefulsets");
      assert.equal(await live.workload(refTo("StatefulSet", "kruise", "apps.kruise.io/v1beta1")), undefined);
      const spec = {
        ...workloadSpec("kruise", { replicas: 3, annotations: IPS }),
        reserveOrdinals: [1, "3-4"],
      };
      await make(connection, kruises, place, { spec });
      await make(connection, clones, shop("clones"), { spec: workloadSpec("clones", { annotations: IPS }) });
      clock.skip(300_000);
      // between being served and being listed nobody knows what there is
      const seenOf = async (kind: string, name: string, apiVersion: string) => {
        const found = await cached.workload(refTo(kind, name, apiVersion));
        return found === "unknown" ? undefined : found;
      };
      const seen = await eventually(
        "it is seen",
        () => seenOf("StatefulSet", "kruise", "apps.kruise.io/v1beta1"),
        20_000,
      );
      assert.deepEqual(await live.workload(refTo("StatefulSet", "kruise", "apps.kruise.io/v1beta1")), seen);
      assert.equal(typeof seen === "string" ? 0 : endOfOrdinals(seen), 6); // ordinals 0, 2 and 5
      const set = await eventually(
        "the CloneSet",
        () => seenOf("CloneSet", "clones", "apps.kruise.io/v1alpha1"),
        20_000,
      );
      assert.equal(typeof set === "string" ? 0 : set.slots, 2);
      // one of apps/v1 with the same name is another
      await makeStatefulSet(connection, place, { replicas: 7 });
      for (const inventory of [cached, live]) {
        const replicasOf = async (apiVersion: string) => {
          const found = await inventory.workload(refTo("StatefulSet", "kruise", apiVersion));
          return typeof found === "string" ? undefined : found?.replicas;
        };
        const native = await eventually("that of apps/v1", async () => await replicasOf("apps/v1"));
        assert.deepEqual([native, await replicasOf("apps.kruise.io/v1beta1")], [7, 3]);
      }
      await forceDelete(connection, STATEFULSETS, place);
      await forceDelete(connection, DEPLOYMENTS, shop("web"));
    });
  });
}
