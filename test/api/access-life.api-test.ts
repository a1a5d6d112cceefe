// SPDX-License-Identifier: Apache-2.0
// A whole life with the chart's accounts, roles and policies, judged by the API server's own audit log.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import {
  CLAIMS,
  collectionPath,
  DEPLOYMENTS,
  EVENTS,
  JOBS,
  type KubeItem,
  LEASES,
  type ObjectName,
  PODS,
  POOLS,
  RESERVATIONS,
  STATEFULSETS,
} from "../../kube/api/resource.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { claimObject, type Json, ownedBy, pod, poolObject, statefulPod } from "../support/objects.ts";
import { type Manifest, resourceOfManifest } from "./accounts.ts";
import { sandbox } from "./agent-cluster.ts";
import { rightsOf, UNUSED } from "./audit-log.ts";
import { callWith, kubeconfigOf, settingOf } from "./berthctl-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { listItems } from "./list-items.ts";
import { indexedJob, mayUse, statefulSet } from "./manifests.ts";
import { change, forceDelete, make, makeDeployment } from "./replica-objects.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("a whole life with the accounts of the chart", () => {
    let cluster: WebhookCluster;

    before(async () => {
      await buildPlugin();
      const env = { BERTH_BOUND_EVENTS: "true" };
      cluster = await WebhookCluster.open({ policies: true, count: 2, env });
      for (const name of ["node-a", "node-b"]) await cluster.addNode(name);
      await applied(toShopkeeper("RoleBinding", { name: "keeper", namespace: "shop" }, "berth-edit"));
    });
    after(() => cluster?.close());

    async function applied(object: Json, user?: string): Promise<void> {
      const manifest = object as unknown as Manifest;
      const path = collectionPath(resourceOfManifest(manifest), manifest.metadata.namespace);
      const { status, body } = await cluster.plane.connect(user).call({ method: "POST", path, body: object });
      assert.equal(status, 201, JSON.stringify(body));
    }

    function toShopkeeper(kind: string, metadata: ObjectName, role: string): Json {
      const apiGroup = "rbac.authorization.k8s.io";
      const roleRef = { apiGroup, kind: "ClusterRole", name: role };
      const subjects = [{ apiGroup, kind: "User", name: "shopkeeper" }];
      return { apiVersion: `${apiGroup}/v1`, kind, metadata, roleRef, subjects };
    }

    async function claim(name: string): Promise<KubeItem | undefined> {
      return await new Client(cluster.admin, CLAIMS).get({ namespace: "shop", name });
    }

    async function untilClaim(name: string, what: string, is: (item: Json) => boolean): Promise<Json> {
      return await eventually(
        `claim ${name} is ${what}`,
        async () => {
          const item = (await claim(name)) as Json | undefined;
          return item !== undefined && is(item) ? item : undefined;
        },
        30_000,
      );
    }

    async function untilGone(name: string): Promise<void> {
      let last: KubeItem | undefined;
      const look = async () => {
        last = await claim(name);
        return last === undefined ? true : undefined;
      };
      await eventually(`claim ${name} is gone`, look, 60_000).catch((error: unknown) => {
        throw new Error(`${String(error)}: ${JSON.stringify(last)}`);
      });
    }

    const specOf = (item: Json) => item["spec"] as Readonly<Record<string, unknown>>;
    const isReported = (detached: boolean) => (item: Json) =>
      ((item["status"] as Json | undefined)?.["attachment"] as Json | undefined)?.["detached"] === detached;
    const isBound = (item: Json) => (specOf(item)["binding"] as Json | undefined)?.["node"] !== undefined;

    /** What the scheduler does. */
    async function schedule(name: string, node: string): Promise<{ name: string; uid: string }> {
      const binding = {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name },
        target: { kind: "Node", name: node },
      };
      const path = `/api/v1/namespaces/shop/pods/${name}/binding`;
      const { status } = await cluster.admin.call({ method: "POST", path, body: binding });
      assert.equal(status, 201);
      const item = await new Client(cluster.admin, PODS).get({ namespace: "shop", name });
      return { name, uid: item?.metadata.uid ?? assert.fail() };
    }

    /** From the scheduler to the end of its sandbox; its claim's name is `of`. */
    async function lived(name: string, node: string, of = name): Promise<readonly string[]> {
      const known = await schedule(name, node);
      await untilClaim(of, "bound", isBound);
      const { runtime } = cluster.node(node);
      const said = sandbox(known, `sandbox-${name}`);
      const addresses = await runtime.add(said);
      await untilClaim(of, "attached", isReported(false));
      await runtime.del(said);
      await forceDelete(cluster.admin, PODS, { namespace: "shop", name });
      return addresses;
    }

    it("pool, pinned pod, ADD, DEL, release", async () => {
      const pool = { ranges: [{ cidr: "10.20.0.0/24" }], cooldown: "1s" };
      await applied(poolObject("db", pool));
      await applied(pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } }));
      assert.deepEqual(await lived("licence", "node-a"), ["10.20.0.70/24"]);
      await untilGone("licence");
    });

    it("a StatefulSet, its ordinals on two nodes, scaled down and deleted", async () => {
      const keys = { "berth.dev/ips": "10.20.0.80;10.20.0.81", "berth.dev/when-scaled": "Release" };
      await applied(statefulSet("mysql", 2, keys));
      for (const [ordinal, node] of ["node-a", "node-b"].entries()) {
        await untilClaim(`mysql-${ordinal}`, "reserved", (item) => specOf(item)["nonce"] !== undefined);
        await applied(statefulPod("mysql", ordinal, { annotations: keys }));
        await lived(`mysql-${ordinal}`, node);
      }
      const place = { namespace: "shop", name: "mysql" };
      await untilClaim("mysql-1", "detached", isReported(true));
      await change(cluster.admin, STATEFULSETS, place, { spec: { replicas: 1 } });
      await untilGone("mysql-1");
      await forceDelete(cluster.admin, STATEFULSETS, place);
      await untilGone("mysql-0");
    });

    it("an index of a Job, whose claim goes with the Job", async () => {
      const annotations = { "berth.dev/ips": "10.20.0.90" };
      const spec = indexedJob(1, annotations);
      const { metadata } = await make(cluster.admin, JOBS, { namespace: "shop", name: "batch" }, { spec });
      const owner = ownedBy("Job", "batch", "batch/v1", metadata.uid);
      const labels = { "batch.kubernetes.io/job-completion-index": "0" };
      await applied(pod("batch-0-x7k2p", { annotations, owner, labels }));
      assert.deepEqual(await lived("batch-0-x7k2p", "node-a", "batch-0"), ["10.20.0.90/24"]);
      // not by forceDelete: the API server's own choice for a Job waits for a garbage collector
      assert.equal((await cluster.plane.kubectl(["delete", "job", "batch", "-n", "shop"])).rc, 0);
      await untilGone("batch-0");
    });

    it("a claim that moves to another node", async () => {
      const annotations = { "berth.dev/ips": "10.20.0.71", "berth.dev/sticky": "true" };
      for (const node of ["node-a", "node-b"]) {
        await applied(pod("wanderer", { annotations }));
        assert.deepEqual(await lived("wanderer", node), ["10.20.0.71/24"]);
        await untilClaim("wanderer", "detached", isReported(true));
      }
    });

    it("a Deployment's set, and a pool for service accounts", async () => {
      const spec = { ranges: [{ cidr: "10.30.0.0/24" }], authorization: "ServiceAccount" };
      await applied(poolObject("web", spec));
      const annotations = { "berth.dev/ips": "10.30.0.5;10.30.0.6" };
      for (const object of mayUse("web", "shop")) await applied(object);
      const owner = {
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        name: "web-abc",
        uid: "u",
        controller: true,
      };
      const place = { namespace: "shop", name: "web" };
      await makeDeployment(cluster.admin, place, { annotations });
      const labels = { "pod-template-hash": "abc" };
      await applied(pod("web-abc-1", { annotations, owner, labels }));
      assert.deepEqual(await lived("web-abc-1", "node-b", "web-slot-0"), ["10.30.0.5/24"]);
      await forceDelete(cluster.admin, DEPLOYMENTS, place);
      await untilGone("web-slot-0");
    });

    it("a claim that a person makes, and deletes again", async () => {
      await applied(claimObject("own", { request: { pools: ["db"] } }), "shopkeeper");
      await untilClaim("own", "reserved", (item) => specOf(item)["nonce"] !== undefined);
      const { rc, stderr } = await cluster.plane.kubectl(["delete", "ipclaim", "own", "-n", "shop"], {
        user: "shopkeeper",
      });
      assert.equal(rc, 0, stderr);
      await untilGone("own");
    });

    it("the same with berthctl, which leaves the reservation to Berth", async () => {
      await applied(toShopkeeper("ClusterRoleBinding", { name: "looks" }, "berth-view"));
      const kubeconfig = kubeconfigOf(cluster.plane, "shopkeeper");
      const berthctl = (...argv: readonly string[]) =>
        callWith(settingOf([kubeconfig]), ...argv, "-n", "shop");
      const reserved = await berthctl("reserve", "mine", "--pool", "db");
      assert.match(reserved.stdout, /^ipclaim\/shop\/mine created +10\.20\.0\.\d+$/m, reserved.stderr);
      const released = await berthctl("release", "shop/mine");
      assert.match(released.stdout, /^ipclaim\/shop\/mine released$/m, released.stderr);
      await untilGone("mine");
    });

    it("a pool that is drained, past the webhook's refusal, goes when its last address does", async () => {
      const pools = new Client(cluster.admin, POOLS);
      const look = async () => {
        const { finalizers = [] } = (await pools.get({ name: "db" }))?.metadata ?? {};
        return finalizers.includes("berth.dev/in-use") || undefined;
      };
      await eventually("the pool says that it is in use", look, 30_000);
      const refused = await cluster.plane.kubectl(["delete", "ippool", "db"]);
      assert.match(refused.stderr, /admission webhook "pools\.berth\.dev" denied the request/);
      const deleted = await cluster.plane.kubectl(["delete", "ipclaim", "--all", "-n", "shop"]);
      assert.equal(deleted.rc, 0, deleted.stderr);
      const reservations = new Client(cluster.admin, RESERVATIONS);
      await eventually(
        "no address is taken",
        async () => ((await listItems(reservations)).length === 0 ? true : undefined),
        60_000,
      );
      const drained = await cluster.plane.kubectl(["delete", "ippool", "db", "--timeout=30s"]);
      assert.equal(drained.rc, 0, drained.stderr);
    });

    it("leases and events are written, and both replicas end as they should", async () => {
      const lease = { namespace: "berth-system", name: "berth-webhook" };
      assert.ok(await new Client(cluster.admin, LEASES).get(lease));
      const items = await listItems(new Client(cluster.admin, EVENTS));
      const reasons = items.map((item) => (item as unknown as { readonly reason: string }).reason);
      assert.ok(reasons.includes("AddressBound"), reasons.join());
      for (const { process } of cluster.replicas.all) await process.stop("SIGTERM");
      for (const node of cluster.nodes.values()) await node.stop();
    });

    it("nothing that webhook or agents asked for was forbidden to them", () => {
      const all = cluster.audit.requests();
      assert.ok(all.length > 150, `${all.length} requests`);
      const forbidden = all.filter(({ responseStatus }) => [401, 403].includes(responseStatus?.code ?? 0));
      assert.deepEqual(
        forbidden.map(({ user, verb, requestURI, responseStatus }) =>
          [user.username, verb, requestURI, responseStatus?.message].join(" "),
        ),
        [],
      );
      const logs = [
        ...cluster.replicas.all.map(({ process }) => process.tail(100_000)),
        ...[...cluster.nodes.values()].map(({ log }) => log),
      ];
      for (const log of logs) {
        assert.notEqual(log, "");
        assert.deepEqual(
          log.split("\n").filter((line) => /\b403\b|forbidden|STORE_READ_ONLY/i.test(line)),
          [],
        );
      }
    });

    it("and of what they may do, nothing was of no use", () => {
      for (const account of ["berth-webhook", "berth-agent"] as const) {
        const used = cluster.audit.usedBy(account);
        const rest = rightsOf(account).filter((right) => !used.has(right));
        const superfluous = rest.filter((right) => !UNUSED[account].includes(right));
        assert.deepEqual(superfluous, [], account);
      }
    });
  });
}
