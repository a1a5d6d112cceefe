// SPDX-License-Identifier: Apache-2.0
// Claims that people make beside pods and workloads that are there: on a real API server, with the webhook and a node's agent.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Store } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, DEPLOYMENTS, type KubeItem, PODS, POOLS } from "../../kube/api/resource.ts";
import { type Condition, conditionsOf } from "../../webhook/controllers/conditions.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { claimObject, deploymentPod, type Json, pod, poolObject } from "../support/objects.ts";
import { accountConfig } from "./accounts.ts";
import { sandbox } from "./agent-cluster.ts";
import { AgentNode } from "./agent-node.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { openStore } from "./open-store.ts";
import { type ControlPlane, FIELDS_UNSEEN } from "./plane.ts";
import { forceDelete, make, makeNode, makePod, workloadSpec } from "./replica-objects.ts";
import { createPod, madePod, type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

const NAMESPACE = "shop";
const NODE = "node-a";
const LIST = { "berth.dev/ips": "10.71.0.50;10.71.0.51" };
const ASKS = { "berth.dev/pools": "web" };

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("a claim made by hand", () => {
    let plane: ControlPlane;
    let admin: Connection;
    let running: RunningWebhook;
    let store: Store;
    let node: AgentNode;

    before(async () => {
      await buildPlugin();
      plane = await openControlPlane();
      admin = plane.connect();
      running = await runWebhook(plane);
      store = openStore(admin);
      await makeNamespaces(admin, [NAMESPACE]);
      await makeNode(admin, NODE);
      const spec = { ranges: [{ cidr: "10.71.0.0/24" }], cooldown: "0s" };
      assert.ok(await new Client(admin, POOLS).create({ name: "web" }, poolObject("web", spec)));
      node = await AgentNode.make(NODE, await accountConfig(plane, "berth-agent", NODE));
      node.runtime.ipam = { subnet: "10.9.0.0/24" };
      await node.start();
      await eventually("the webhook knows the pool", async () =>
        typeof (await createPod(plane, pod("first", { annotations: ASKS }), NAMESPACE)) === "string"
          ? undefined
          : true,
      );
    });
    after(async () => {
      await node?.remove();
      await store?.close();
      await running?.close();
      await plane?.close();
    });

    /** What `kubectl apply` says on standard error. */
    async function applied(object: Json): Promise<string> {
      const ended = await plane.kubectl(["apply", FIELDS_UNSEEN, "-f", "-"], {
        stdin: JSON.stringify(object),
      });
      return ended.stderr.trim();
    }

    async function condition(name: string, type: string, reason: string): Promise<Condition> {
      return await eventually(`${type} of ${name} is ${reason}`, async () => {
        const item = await new Client(admin, CLAIMS).get({ namespace: NAMESPACE, name });
        return item && conditionsOf(item).find((one) => one.type === type && one.reason === reason);
      });
    }

    async function events(): Promise<string> {
      return (await plane.kubectl(["get", "events", "-n", NAMESPACE, "-o", "wide"])).stdout;
    }

    async function bindingOf(name: string): Promise<string | undefined> {
      return (await store.get("claim", `${NAMESPACE}/${name}`))?.record.binding?.podUID;
    }

    /** The kubelet says that the pod's sandbox is up. */
    async function runs({ metadata: { name } }: KubeItem, podIP: string): Promise<void> {
      const body = { status: { phase: "Running", podIP, podIPs: [{ ip: podIP }] } };
      assert.ok(
        await new Client(admin, PODS).patch(
          { namespace: NAMESPACE, name },
          { type: "merge", body },
          "status",
        ),
      );
    }

    const made = async (name: string) => {
      const item = await makePod(admin, { namespace: NAMESPACE, name }, { node: NODE });
      return { item, ref: { name, uid: item.metadata.uid } };
    };
    const gone = (name: string) => forceDelete(admin, PODS, { namespace: NAMESPACE, name });
    const claimFor = (name: string, address: string) =>
      claimObject(name, { request: { addresses: [address] } });

    it("keeps its addresses from a pod and a StatefulSet of its name that ask for others, in words", async () => {
      const names = { keeper: "10.71.0.30", "keepers-0": "10.71.0.31" };
      for (const [name, address] of Object.entries(names)) {
        await applied(claimFor(name, address));
        await condition(name, "Ready", "Reserved");
      }
      const annotations = { "berth.dev/ips": "10.71.0.39" };
      const words = (name: string, has: string) =>
        `claim ${NAMESPACE}/${name} was made by hand and holds ${has}, and this asks for 10.71.0.39; ask for what the claim has, or `;
      const bare = await createPod(plane, pod("keeper", { annotations }), NAMESPACE);
      assert.ok(typeof bare === "string" && bare.includes(words("keeper", "10.71.0.30")), String(bare));
      const set = await applied({
        ...{
          apiVersion: "apps/v1",
          kind: "StatefulSet",
          metadata: { name: "keepers", namespace: NAMESPACE },
        },
        spec: { serviceName: "keepers", ...workloadSpec("keepers", { annotations }) },
      });
      assert.ok(set.includes(words("keepers-0", "10.71.0.31")), set);
      for (const [name, address] of Object.entries(names))
        assert.deepEqual((await store.get("claim", `${NAMESPACE}/${name}`))?.record.addresses, [address]);
      const own = { annotations: { "berth.dev/ips": "10.71.0.30" } };
      const kept = await madePod(plane, pod("keeper", own), NAMESPACE);
      assert.equal(kept.metadata.annotations?.["berth.dev/addresses"], "10.71.0.30");
    });

    it("for a pod that is up with an address of its node's ranges is the next pod's, in words", async () => {
      const { item, ref } = await made("ranger");
      assert.deepEqual(await node.runtime.add(sandbox(ref, "r1")), ["10.9.0.2/24"]);
      await runs(item, "10.9.0.2");
      await applied(claimFor("ranger", "10.71.0.20"));
      await condition("ranger", "Ready", "Reserved");
      const { status, message } = await condition("ranger", "Bindable", "PodKeepsAddress");
      assert.equal(status, "False");
      assert.match(message, /^pod ranger .* is up with another address, which it keeps; the next pod /);
      await eventually("an event says so", async () =>
        /PodKeepsAddress +ipclaim\/ranger .*delete the pod and create it again/.test(await events())
          ? true
          : undefined,
      );
      await node.runtime.del(sandbox(ref, "r1"));
      assert.deepEqual(await node.runtime.add(sandbox(ref, "r2")), ["10.9.0.3/24"]);
      assert.equal(await bindingOf("ranger"), undefined);
      await node.runtime.del(sandbox(ref, "r2"));
      await gone("ranger");
      await condition("ranger", "Bindable", "Free");
      const next = await made("ranger");
      await eventually("it is bound", async () =>
        (await bindingOf("ranger")) === next.ref.uid ? true : undefined,
      );
      assert.deepEqual(await node.runtime.add(sandbox(next.ref, "r3")), ["10.71.0.20/24"]);
      await node.runtime.del(sandbox(next.ref, "r3"));
      await gone("ranger");
    });

    it("that is bound while the pod's first sandbox comes up changes no address of it", async () => {
      const { item, ref } = await made("early");
      const [first = ""] = await node.runtime.add(sandbox(ref, "e1"));
      await applied(claimFor("early", "10.71.0.21"));
      await eventually("it is bound", async () =>
        (await bindingOf("early")) === ref.uid ? true : undefined,
      );
      await runs(item, first.replace(/\/.*/, ""));
      await node.runtime.del(sandbox(ref, "e1"));
      const [second = ""] = await node.runtime.add(sandbox(ref, "e2"));
      assert.match(second, /^10\.9\.0\./);
      await node.runtime.del(sandbox(ref, "e2"));
      await gone("early");
      const next = await made("early");
      await eventually("it moves on", async () =>
        (await bindingOf("early")) === next.ref.uid ? true : undefined,
      );
      assert.deepEqual(await node.runtime.add(sandbox(next.ref, "e3")), ["10.71.0.21/24"]);
      await node.runtime.del(sandbox(next.ref, "e3"));
      await gone("early");
    });

    it("is refused under the name of a slot, as is a bare pod, and the Deployment has all its slots", async () => {
      const place = { namespace: NAMESPACE, name: "web" };
      await make(admin, DEPLOYMENTS, place, {
        spec: workloadSpec("web", { annotations: LIST, spec: { strategy: { type: "Recreate" } } }),
      });
      assert.match(
        await applied(claimFor("web-slot-0", "10.71.0.60")),
        /"claims\.berth\.dev" denied the request: metadata\.name web-slot-0 is that of the claim of slot 0 of a set web, /,
      );
      const refused = await createPod(plane, pod("web-slot-1", { annotations: ASKS }), NAMESPACE);
      assert.match(
        String(refused),
        /denied the request: claim shop\/web-slot-1 belongs to Deployment web, slot 1; give this pod another name/,
      );
      const given = [];
      for (let n = 0; n < 2; n++) {
        const { metadata } = await madePod(plane, deploymentPod("web", { annotations: LIST }), NAMESPACE);
        given.push(metadata.annotations?.["berth.dev/addresses"]);
      }
      assert.deepEqual(given.sort(), ["10.71.0.50", "10.71.0.51"]);
    });
  });
}
