// SPDX-License-Identifier: Apache-2.0
// A StatefulSet whose list is edited while its controller leaves the pods as they are: Kubernetes' own controller, a real
// agent, and a kubelet that is played.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ASSIGNED_ADDRESSES } from "../../allocator/manifest/annotations.ts";
import type { Store } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { EVENTS, itemPath, type KubeItem, PODS, POOLS, STATEFULSETS } from "../../kube/api/resource.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { pod, poolObject } from "../support/objects.ts";
import { accountConfig } from "./accounts.ts";
import { NAMESPACE, sandbox } from "./agent-cluster.ts";
import { AgentNode } from "./agent-node.ts";
import { makeNamespaces } from "./crds.ts";
import type { Daemon } from "./daemon.ts";
import { haveControllersOrSkip, startControllers } from "./kubernetes-controllers.ts";
import { listItems } from "./list-items.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { change, forceDelete, type Json, make, makeNode, workloadSpec } from "./replica-objects.ts";
import { createPod, type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

const NODE = "node-a";
const IPS = "berth.dev/ips";
const NOTICE = "2 pods have other addresses when they are created again; the first, pod ";

interface Observed {
  readonly metadata: { readonly generation: number };
  readonly status?: { readonly observedGeneration?: number };
}

interface Noted extends KubeItem {
  readonly note: string;
  readonly regarding: { readonly name: string };
}

/** Who leaves the pods alone, and how the second one comes to be replaced in the end. */
const STRATEGIES: readonly { readonly name: string; readonly strategy: Json; readonly block: string }[] = [
  {
    name: "partition",
    strategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } },
    block: "10.70.1",
  },
  { name: "on-delete", strategy: { type: "OnDelete" }, block: "10.70.2" },
];

if (haveControllersOrSkip(["etcd", "kube-apiserver", "kube-controller-manager"])) {
  describe("a StatefulSet whose list is edited while its pods stay", () => {
    let plane: ControlPlane;
    let admin: Connection;
    let running: RunningWebhook;
    let store: Store;
    let node: AgentNode;
    let daemons: readonly Daemon[] = [];

    before(async () => {
      await buildPlugin();
      plane = await openControlPlane();
      admin = plane.connect();
      running = await runWebhook(plane);
      store = openStore(admin);
      await makeNamespaces(admin, [NAMESPACE]);
      await makeNode(admin, NODE);
      const spec = { ranges: [{ cidr: "10.70.0.0/16" }], cooldown: "0s" };
      assert.ok(await new Client(admin, POOLS).create({ name: "web" }, poolObject("web", spec)));
      const first = pod("first", { annotations: { "berth.dev/pools": "web" } });
      await eventually("the webhook knows the pool", async () =>
        typeof (await createPod(plane, first, NAMESPACE)) === "string" ? undefined : true,
      );
      node = await AgentNode.make(NODE, await accountConfig(plane, "berth-agent", NODE));
      await node.start();
      daemons = startControllers(plane, { controllers: ["statefulset"] });
    });
    after(async () => {
      for (const daemon of daemons) await daemon.stop("SIGKILL");
      await node?.remove();
      await store?.close();
      await running?.close();
      await plane?.close();
    });

    /** The pod of the name, once it is there, and not the one with that UID. */
    async function podOf(name: string, before?: KubeItem): Promise<KubeItem> {
      return await eventually(`pod ${name} is made`, async () => {
        const found = await new Client(admin, PODS).get({ namespace: NAMESPACE, name });
        return found?.metadata.uid === before?.metadata.uid ? undefined : found;
      });
    }

    /** The scheduler places the pod, and its kubelet makes its sandbox: the addresses that this has. */
    async function run({ metadata: { name, uid } }: KubeItem): Promise<readonly string[]> {
      const target = { apiVersion: "v1", kind: "Node", name: NODE };
      const body = { apiVersion: "v1", kind: "Binding", metadata: { name }, target };
      const path = `${itemPath(PODS, { namespace: NAMESPACE, name })}/binding`;
      assert.equal((await admin.call({ method: "POST", path, body })).status, 201);
      await eventually(`${name} is bound`, async () => {
        const binding = (await store.get("claim", `${NAMESPACE}/${name}`))?.record.binding;
        return binding?.podUID === uid && binding.node === NODE ? true : undefined;
      });
      return await node.runtime.add(sandbox({ name, uid }, `of-${uid}`));
    }

    /** Its kubelet ends a pod that is being deleted. */
    async function end(made: KubeItem): Promise<void> {
      const { name, uid } = made.metadata;
      await eventually(`${name} is to go`, async () => {
        const found = await new Client(admin, PODS).get({ namespace: NAMESPACE, name });
        return found?.metadata["deletionTimestamp"] === undefined ? undefined : true;
      });
      await node.runtime.del(sandbox({ name, uid }, `of-${uid}`));
      await forceDelete(admin, PODS, { namespace: NAMESPACE, name });
    }

    async function held(name: string): Promise<string> {
      return (await store.get("claim", `${NAMESPACE}/${name}`))?.record.addresses.join() ?? "none";
    }

    /** Both controllers have seen the list as it is now: Kubernetes' says so in its status, and Berth's by what it did. */
    async function seen(name: string, reported: string): Promise<void> {
      await eventually("Kubernetes' controller has seen it", async () => {
        const set = await new Client(admin, STATEFULSETS).get({ namespace: NAMESPACE, name });
        const { metadata, status } = set as unknown as Observed;
        return status?.observedGeneration === metadata.generation ? true : undefined;
      });
      await eventually("Berth's controller has seen it", async () => {
        const items = await listItems(new Client(admin, EVENTS));
        const notes = (items as Noted[]).filter(({ regarding }) => regarding.name === name);
        const isTold = notes.some(({ note }) => note.startsWith(NOTICE));
        return isTold || (await held(`${name}-0`)) !== reported ? true : undefined;
      });
    }

    for (const { name, strategy, block } of STRATEGIES) {
      it(`leaves every pod the addresses that it was told, until it is replaced (${name})`, async () => {
        const [a, b, c, d] = [`${block}.10`, `${block}.11`, `${block}.12`, `${block}.13`];
        const place = { namespace: NAMESPACE, name };
        const spec = workloadSpec(name, { replicas: 2, annotations: { [IPS]: `${a};${b}` } });
        const parallel = { podManagementPolicy: "Parallel", updateStrategy: strategy, serviceName: name };
        await make(admin, STATEFULSETS, place, { spec: { ...spec, ...parallel } });
        const pods = [await podOf(`${name}-0`), await podOf(`${name}-1`)] as const;
        assert.deepEqual(pods.map(toldTo), [a, b]);

        const annotations = { [IPS]: `${c};${d}` };
        await change(admin, STATEFULSETS, place, { spec: { template: { metadata: { annotations } } } });
        await seen(name, a);
        assert.deepEqual([await held(`${name}-0`), await held(`${name}-1`)], [a, b]);
        const stranger = (address: string) =>
          pod(`wants-${address.replaceAll(".", "-")}`, { annotations: { [IPS]: address } });
        for (const [ordinal, address] of [a, b].entries())
          assert.match(
            String(await createPod(plane, stranger(address), NAMESPACE)),
            new RegExp(`address ${address} in pool "web" is held by ${NAMESPACE}/${name}-${ordinal} `),
          );
        assert.equal(await store.get("reservation", c), undefined, "what nobody was told is anybody's");
        for (const made of pods) assert.deepEqual(await run(made), [`${toldTo(made)}/16`]);

        const [, second] = pods;
        if (name === "partition") {
          const updateStrategy = { rollingUpdate: { partition: 1 } };
          await change(admin, STATEFULSETS, place, { spec: { updateStrategy } });
        } else {
          const path = itemPath(PODS, { namespace: NAMESPACE, name: second.metadata.name });
          assert.equal((await admin.call({ method: "DELETE", path })).status, 200);
        }
        await end(second);
        const next = await podOf(second.metadata.name, second);
        assert.equal(toldTo(next), d);
        assert.deepEqual(await run(next), [`${d}/16`]);
        assert.deepEqual([await held(`${name}-0`), await held(`${name}-1`)], [a, d]);
        assert.equal((await podOf(`${name}-0`)).metadata.uid, pods[0].metadata.uid);
      });
    }
  });
}

function toldTo({ metadata: { annotations = {} } }: KubeItem): string {
  return annotations[ASSIGNED_ADDRESSES] ?? "";
}
