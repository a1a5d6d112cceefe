// SPDX-License-Identifier: Apache-2.0
// The webhook in the cluster: what it costs the API server, what it leaves behind, whom it asks, how it goes. Under load:
// rolling-admission.api-test.ts.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../../kube/api/client.ts";
import type { Answer } from "../../kube/api/connection.ts";
import {
  CLAIMS,
  collectionPath,
  itemPath,
  LEASES,
  PODS,
  POOLS,
  RESERVATIONS,
  type Resource,
  STATEFULSETS,
} from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { call, podReview } from "../../webhook/testing/api-server.ts";
import { eventually } from "../support/eventually.ts";
import { annotationsOf, type Json, pod, poolObject, statefulPod } from "../support/objects.ts";
import { start } from "../support/process.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CLUSTER_ROLES, POLICIES, POLICY_BINDINGS, QUOTAS, ROLE_BINDINGS } from "./cluster-resources.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { EagerClock } from "./eager-clock.ts";
import { listItems } from "./list-items.ts";
import { POOL_OBJECTS, statefulSet } from "./manifests.ts";
import type { ControlPlane } from "./plane.ts";
import { readyz, startReplicas, WEBHOOK_MAIN } from "./replicas.ts";
import { readBack, requestCounts, requestsBetween } from "./request-counts.ts";
import { type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

/** All but pools, whose status the pools controller writes now and then. */
const WATCHED = [
  "ipclaims",
  "ipreservations",
  "pods",
  "namespaces",
  "nodes",
  "statefulsets",
  "subjectaccessreviews",
];

const VERBS = ["GET", "LIST", "POST", "PUT", "PATCH", "DELETE"];

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the webhook in a cluster", () => {
    let plane: ControlPlane;
    before(async () => {
      plane = await openControlPlane();
      await installDefinitions(plane.connect());
      await makeNamespaces(plane.connect(), ["berth-system", "shop", "full"]);
    });
    after(() => plane?.close());

    async function make(of: Resource, name: string, body: Json, namespace?: string): Promise<void> {
      const place = namespace === undefined ? { name } : { namespace, name };
      assert.ok(await new Client(plane.connect(), of).create(place, body), `${of.plural} ${name} is there`);
    }

    /** What the API server says to an object that somebody creates. */
    async function send(object: Json): Promise<Answer> {
      const metadata = object["metadata"] as { readonly namespace?: string };
      const kind = String(object["kind"]);
      const of = [PODS, POOLS, STATEFULSETS].find((one) => one.kind === kind);
      assert.ok(of);
      const path = collectionPath(of, metadata.namespace);
      return await plane.connect().call({ method: "POST", path, body: object });
    }

    /** The addresses of a pod that was made, or why it was not. */
    async function sent(object: Json): Promise<string> {
      const answer = await send(object);
      if (answer.status !== 201) return statusOf(answer.body, answer.status).message;
      return annotationsOf(answer.body as Json)["berth.dev/addresses"] ?? "";
    }

    async function names(of: Resource): Promise<string[]> {
      const items = await listItems(new Client(plane.connect(), of));
      return items.map(({ metadata }) => metadata.name).sort();
    }

    describe("in this process, on a clock that can be set forward", () => {
      const clock = new EagerClock();
      let running: RunningWebhook;
      before(async () => {
        running = await runWebhook(plane, { clock, policies: false });
        for (const object of POOL_OBJECTS) assert.equal((await send(object)).status, 201);
        // at once: a replica that has not heard of the pools yet waits for them
        const first = await sent(pod("first", { annotations: { "berth.dev/ips": "10.20.0.199" } }));
        assert.equal(first, "10.20.0.199");
      });
      after(() => running?.close());

      /** Calls that the work costs, other than those of the work itself. */
      async function cost(work: () => Promise<void>): Promise<Record<string, number>> {
        const connection = plane.connect();
        const before = await requestCounts(connection);
        await work();
        return requestsBetween([before, await requestCounts(connection)], WATCHED, VERBS);
      }

      it("costs two writes for a new identity, and nothing when its pod comes again", async () => {
        const list = { "berth.dev/ips": "10.20.0.80;10.20.0.81" };
        assert.equal((await send(statefulSet("mysql", 2, {}))).status, 201);
        const came = async () => {
          assert.equal(await sent(statefulPod("mysql", 0, { annotations: list })), "10.20.0.80");
        };
        const first = await cost(came);
        assert.deepEqual(first, {
          "POST ipclaims": 1,
          "GET ipclaims": 1,
          "POST ipreservations": 1,
          ...(await readBack(plane.connect(), { namespace: "shop", name: "mysql-0" }, "10.20.0.80")),
          "POST pods": 1,
        });
        await plane.kubectl(["delete", "pod", "mysql-0", "-n", "shop", "--force", "--grace-period=0"]);
        assert.deepEqual(await cost(came), { "POST pods": 1 });
      });

      it("leaves nothing of a pod that a policy or a quota refuses after it, once its time is over", async () => {
        await make(POLICIES, "unwanted", {
          spec: {
            failurePolicy: "Fail",
            matchConstraints: {
              resourceRules: [
                { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
              ],
            },
            validations: [{ expression: "!object.metadata.name.startsWith('unwanted')" }],
          },
        });
        await make(POLICY_BINDINGS, "unwanted", {
          spec: { policyName: "unwanted", validationActions: ["Deny"] },
        });
        await make(QUOTAS, "pods", { spec: { hard: { pods: "0" } } }, "full");
        const quotas = new Client(plane.connect(), QUOTAS);
        const status = { hard: { pods: "0" }, used: { pods: "0" } };
        await quotas.patch(
          { namespace: "full", name: "pods" },
          { type: "merge", body: { status } },
          "status",
        );
        const pinned = (name: string, namespace: string, ips: string) =>
          pod(name, { namespace, annotations: { "berth.dev/ips": ips } });
        await eventually("the policy holds", async () =>
          (await sent(pod("unwanted-probe"))).includes("ValidatingAdmissionPolicy 'unwanted'")
            ? true
            : undefined,
        );
        await eventually("the quota holds", async () =>
          (await sent(pod("plain", { namespace: "full" }))).includes("exceeded quota: pods")
            ? true
            : undefined,
        );
        assert.match(await sent(pinned("unwanted", "shop", "10.20.0.90")), /'unwanted'/);
        assert.match(await sent(pinned("beyond", "full", "10.20.0.91")), /exceeded quota: pods/);
        const left = ["10.20.0.90", "10.20.0.91"];
        const podIdentity = async () => (await names(RESERVATIONS)).filter((name) => left.includes(name));
        assert.deepEqual(await podIdentity(), left);
        clock.forward(100_000);
        await pause(1_200);
        assert.deepEqual(await podIdentity(), left);
        clock.forward(21_000);
        await eventually("they cool", async () =>
          (await names(CLAIMS)).some((name) => ["unwanted", "beyond"].includes(name)) ? undefined : true,
        );
        clock.forward(30_000);
        await eventually("they are gone", async () =>
          (await podIdentity()).length === 0 ? true : undefined,
        );
      });

      it("asks the API server whether a service account may use a pool", async () => {
        const spec = { ranges: [{ cidr: "10.60.0.0/29" }], authorization: "ServiceAccount" };
        assert.equal((await send(poolObject("bank", spec))).status, 201);
        const asking = (name: string, account: string) =>
          pod(name, { annotations: { "berth.dev/pools": "bank" }, spec: { serviceAccountName: account } });
        const refused = 'pool "bank" is only for service accounts with the verb "use" on it';
        await eventually("the pool is known", async () =>
          (await sent(asking("outsider", "teller"))).includes(refused) ? true : undefined,
        );
        const rule = {
          apiGroups: ["berth.dev"],
          resources: ["ippools"],
          resourceNames: ["bank"],
          verbs: ["use"],
        };
        await make(CLUSTER_ROLES, "use-bank", { rules: [rule] });
        await make(
          ROLE_BINDINGS,
          "use-bank",
          {
            subjects: [{ kind: "ServiceAccount", name: "clerk", namespace: "shop" }],
            roleRef: { apiGroup: CLUSTER_ROLES.group, kind: "ClusterRole", name: "use-bank" },
          },
          "shop",
        );
        await eventually("the role is known", async () =>
          (await sent(asking("insider", "clerk"))).startsWith("10.60.0.") ? true : undefined,
        );
        assert.match(await sent(asking("outsider", "teller")), new RegExp(refused));
        const again = await cost(async () => {
          assert.match(await sent(asking("insider2", "clerk")), /^10\.60\.0\./);
        });
        assert.equal(again["POST subjectaccessreviews"], undefined);
        const labels = { app: "clerks" };
        const annotations = { "berth.dev/pools": "bank" };
        const podSpec = {
          serviceAccountName: "clerk",
          containers: [{ name: "main", image: "registry.example/app:1" }],
        };
        const set = { serviceName: "clerks", replicas: 2, selector: { matchLabels: labels } };
        const template = { metadata: { labels, annotations }, spec: podSpec };
        await make(STATEFULSETS, "clerks", { spec: { ...set, template } }, "shop");
        await eventually("it is reserved for in advance", async () =>
          (await names(CLAIMS)).filter((name) => name.startsWith("clerks-")).length === 2 ? true : undefined,
        );
      });
    });

    describe("as processes", () => {
      before(async () => {
        const admin = plane.connect();
        for (const kind of ["mutating", "validating"]) {
          const path = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations/berth`;
          await admin.call({ method: "DELETE", path });
        }
        for (const object of POOL_OBJECTS) await send(object); // which are there, unless this runs alone
      });

      it("end as they are told: not ready first, serving still, the lease given back, with status 0", async () => {
        const replicas = await startReplicas(plane, { env: { BERTH_DEPART: "1500ms" } });
        const [replica] = replicas.all;
        assert.ok(replica);
        await replica.process.stop("SIGTERM");
        // those before it were killed, and nobody has had time to take over from them
        const path = itemPath(LEASES, { namespace: "berth-system", name: "berth-webhook" });
        await plane.connect().call({ method: "DELETE", path });
        const { child, ended } = start(process.execPath, [WEBHOOK_MAIN], { env: replica.env });
        try {
          const { ca } = replicas;
          const { port } = replica;
          await eventually(
            "it is ready",
            async () => ((await readyz(port, ca)) === 200 ? true : undefined),
            30_000,
          );
          const lease = async () => {
            const { body } = await plane.connect().call({ method: "GET", path });
            return (body as { spec?: { holderIdentity?: string } }).spec?.holderIdentity ?? "";
          };
          await eventually("it leads", async () => ((await lease()) === "" ? undefined : true), 30_000);
          child.kill("SIGTERM");
          await eventually("it says so", async () => ((await readyz(port, ca)) === 503 ? true : undefined));
          const body = JSON.stringify(podReview({ object: pod("plain") }));
          const answer = await call({ port, ca, path: "/mutate/pods", body });
          assert.equal(JSON.parse(answer.text).response.allowed, true);
          const { rc, stderr } = await ended;
          assert.equal(rc, 0, stderr);
          assert.equal(await lease(), "");
        } finally {
          child.kill("SIGKILL");
          await replicas.close();
        }
      });
    });
  });
}
