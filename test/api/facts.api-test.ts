// SPDX-License-Identifier: Apache-2.0
// Claims follow facts, on a real API server: what no pod stands behind changes nothing, and what nobody needs is let go.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../allocator/manifest/annotations.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { DEPLOYMENTS, itemPath, type KubeItem, PODS, POOLS, STATEFULSETS } from "../../kube/api/resource.ts";
import { call } from "../../webhook/testing/api-server.ts";
import { eventually } from "../support/eventually.ts";
import { deploymentPod, type Json, ownedBy, pod, poolObject, statefulPod } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { ForwardClock } from "./forward-clock.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { change, forceDelete, make, makeNode, makeStatefulSet, workloadSpec } from "./replica-objects.ts";
import { createPod, forge, madePod, type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

const NAMESPACE = "shop";
const NODE = "node-a";
const IPS = "berth.dev/ips";
const ASKS = { "berth.dev/pools": "web" };
const PROMISE_MS = 120_000;
/** A pass of the garbage collector comes every 10 s, and a busy machine takes its time for one. */
const LET_GO_MS = 60_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("claims follow facts", () => {
    const clock = new ForwardClock();
    let plane: ControlPlane;
    let admin: Connection;
    let running: RunningWebhook;
    let store: Store;

    before(async () => {
      plane = await openControlPlane();
      admin = plane.connect();
      running = await runWebhook(plane, { clock, policies: false });
      store = openStore(admin);
      await makeNamespaces(admin, [NAMESPACE]);
      await makeNode(admin, NODE);
      // What the tests ask for by name is given to nobody who asks for any address.
      const spec = {
        ranges: [{ cidr: "10.70.0.0/24" }],
        reserved: ["10.70.0.50-10.70.0.79"],
        cooldown: "0s",
      };
      assert.ok(await new Client(admin, POOLS).create({ name: "web" }, poolObject("web", spec)));
      await eventually("the webhook knows the pool", async () =>
        typeof (await createPod(plane, pod("first", { annotations: ASKS }), NAMESPACE)) === "string"
          ? undefined
          : true,
      );
    });
    after(async () => {
      await store?.close();
      await running?.close();
      await plane?.close();
    });

    async function claimOf(name: string): Promise<Stored<"claim"> | undefined> {
      return await store.get("claim", `${NAMESPACE}/${name}`);
    }

    /** What a review must not change. */
    async function kept(name: string): Promise<Partial<Claim> | undefined> {
      const claim = (await claimOf(name))?.record;
      if (claim === undefined) return undefined;
      const { addresses, identity, request, retention } = claim;
      return { addresses, identity, request, retention };
    }

    /** A review that no API server sent: what it was told, as the text of the answer. */
    async function forged(object: Json): Promise<string> {
      const { text, response } = await forge(running, object);
      return `${text} ${Buffer.from(response.patch ?? "", "base64").toString()}`;
    }

    /** The scheduler places the pod; its claim, once it is bound. */
    async function bound({ metadata: { name, uid, annotations = {} } }: KubeItem): Promise<Stored<"claim">> {
      const target = { apiVersion: "v1", kind: "Node", name: NODE };
      const body = { apiVersion: "v1", kind: "Binding", metadata: { name }, target };
      const path = `${itemPath(PODS, { namespace: NAMESPACE, name })}/binding`;
      assert.equal((await admin.call({ method: "POST", path, body })).status, 201);
      return await eventually(`${name} is bound`, async () => {
        const claim = await claimOf(annotations[ASSIGNED_CLAIM] ?? "");
        return claim?.record.binding?.podUID === uid && claim.record.binding?.node === NODE
          ? claim
          : undefined;
      });
    }

    /** The agent has seen the sandbox of the pod come and go. */
    async function detached({ metadata: { uid } }: KubeItem, claim: string): Promise<void> {
      const seen = await claimOf(claim);
      assert.ok(seen);
      const sandbox = { containerID: `of-${uid}`, interface: "eth0", podUID: uid, since: clock.now() };
      await store.report(seen, {
        attachment: { node: NODE, ...sandbox, detached: true },
      });
    }

    async function end(made: KubeItem, phase: "Failed" | "Succeeded"): Promise<void> {
      const place = { namespace: NAMESPACE, name: made.metadata.name };
      const body = { status: { phase } };
      await new Client(admin, PODS).patch(place, { type: "merge", body }, "status");
    }

    async function remove(made: KubeItem): Promise<void> {
      await forceDelete(admin, PODS, { namespace: NAMESPACE, name: made.metadata.name });
    }

    it("a forged review changes nothing of a claim that is kept for a pod that is gone", async () => {
      const annotations = { [IPS]: "10.70.0.50", "berth.dev/when-deleted": "Retain" };
      const made = await madePod(plane, pod("victim", { annotations }), NAMESPACE);
      await bound(made);
      await detached(made, "victim");
      await remove(made);
      await eventually("it is retained", async () => (await claimOf("victim"))?.record.retained, LET_GO_MS);
      const before = await kept("victim");
      await forged(pod("victim", { annotations: { [IPS]: "10.70.0.60" } }));
      await forged(
        pod("victim", { annotations: { [IPS]: "10.70.0.50", "berth.dev/when-deleted": "Release" } }),
      );
      assert.deepEqual(await kept("victim"), before);
      assert.equal((await store.get("reservation", "10.70.0.50"))?.record.releasedAt, undefined);
      const again = await madePod(plane, pod("victim", { annotations }), NAMESPACE);
      assert.equal(toldTo(again, ASSIGNED_ADDRESSES), "10.70.0.50");
      await bound(again);
    });

    it("a forged review moves no claim under a pod that is pending, and is told no other pod's token", async () => {
      const made = await madePod(plane, pod("pending", { annotations: ASKS }), NAMESPACE);
      const before = await kept("pending");
      await forged(pod("pending", { annotations: { [IPS]: "10.70.0.61" } }));
      assert.deepEqual(await kept("pending"), before);
      assert.deepEqual((await bound(made)).record.addresses.join(), toldTo(made, ASSIGNED_ADDRESSES));
      const asks = deploymentPod("tokens", { annotations: { [IPS]: "10.70.0.62" } });
      const token = toldTo(await madePod(plane, asks, NAMESPACE), ASSIGNED_TOKEN);
      assert.notEqual(token, "");
      for (const object of [asks, pod("tokens-slot-0", { annotations: ASKS }), pod("tokens-slot-0")]) {
        assert.ok(!(await forged(object)).includes(token));
      }
    });

    it("a second create of the name changes nothing under a pod that is there", async () => {
      const asks = (address: string) => pod("twice", { annotations: { [IPS]: address } });
      const made = await madePod(plane, asks("10.70.0.63"), NAMESPACE);
      assert.match(String(await createPod(plane, asks("10.70.0.64"), NAMESPACE)), /already exists/);
      assert.deepEqual((await bound(made)).record.addresses, ["10.70.0.63"]);
    });

    it("a restore without owners turns no ordinal into a pod by itself", async () => {
      const annotations = { ...ASKS, "berth.dev/when-scaled": "Retain" };
      const set = await make(
        admin,
        STATEFULSETS,
        { namespace: NAMESPACE, name: "ledger" },
        { spec: workloadSpec("ledger", { annotations }) },
      );
      const owner = ownedBy("StatefulSet", "ledger", "apps/v1", set.metadata.uid);
      const made = await madePod(plane, statefulPod("ledger", 0, { annotations, owner }), NAMESPACE);
      await bound(made);
      await detached(made, "ledger-0");
      const before = await kept("ledger-0");
      assert.match(
        String(await createPod(plane, pod("ledger-0", { annotations }), NAMESPACE)),
        /already exists/,
      );
      assert.deepEqual(await kept("ledger-0"), before);
      assert.equal(before?.identity?.kind, "StatefulSet");
    });

    for (const [what, name, replicas] of [
      ["a StatefulSet wants", "wanted", 2],
      ["a StatefulSet retains beyond its replicas", "scaled", 1],
    ] as const) {
      it(`a pod by itself uses the claim of the ordinal that ${what}, and gives it back`, async () => {
        const list = name === "wanted" ? "10.70.0.73;10.70.0.74" : "10.70.0.75;10.70.0.76";
        const [, second = ""] = list.split(";");
        const annotations = { [IPS]: list, "berth.dev/when-scaled": "Retain" };
        const place = { namespace: NAMESPACE, name };
        const set = await makeStatefulSet(admin, place, { replicas: 2, annotations });
        const key = `${name}-1`;
        await eventually("its claim is made", async () => await claimOf(key));
        if (replicas === 1) {
          const owner = ownedBy("StatefulSet", name, "apps/v1", set.metadata.uid);
          const own = await madePod(plane, statefulPod(name, 1, { annotations, owner }), NAMESPACE);
          await bound(own);
          await detached(own, key);
          await remove(own);
          await change(admin, STATEFULSETS, place, { spec: { replicas } });
          await eventually("it is retained", async () => (await claimOf(key))?.record.retained, LET_GO_MS);
        }
        const before = await kept(key);
        assert.equal(before?.identity?.kind, "StatefulSet");

        const other = pod(key, { annotations: { [IPS]: "10.70.0.77" } });
        assert.match(
          String(await createPod(plane, other, NAMESPACE)),
          /for StatefulSet .*, ordinal 1, whose it stays/,
        );
        const made = await madePod(plane, pod(key, { annotations: { [IPS]: second } }), NAMESPACE);
        assert.deepEqual((await bound(made)).record.addresses, [second]);
        assert.deepEqual(await kept(key), before, "it uses the address, and changes nothing");
        await detached(made, key);
        await remove(made);
        clock.forward(PROMISE_MS);
        await passes(2);
        assert.deepEqual(await kept(key), before, "it was given back");
        assert.equal((await store.get("reservation", second))?.record.releasedAt, undefined);
      });
    }

    it("the next pod of a name has its claim as it says itself, from when it is there, and not before", async () => {
      const first = { [IPS]: "10.70.0.71", "berth.dev/when-deleted": "Retain" };
      const made = await madePod(plane, pod("settles", { annotations: first }), NAMESPACE);
      await bound(made);
      await detached(made, "settles");
      await remove(made);
      await eventually("it is retained", async () => (await claimOf("settles"))?.record.retained, LET_GO_MS);
      const before = await kept("settles");
      const same = { ...first, "berth.dev/ttl": "1h" };
      await forged(pod("settles", { annotations: same }));
      assert.deepEqual(await kept("settles"), before, "a review writes nothing of it");
      const second = await madePod(plane, pod("settles", { annotations: same }), NAMESPACE);
      assert.equal((await bound(second)).record.retention.ttlMs, 3_600_000);
      await detached(second, "settles");
      await remove(second);
      const other = await madePod(
        plane,
        pod("settles", { annotations: { ...first, [IPS]: "10.70.0.72" } }),
        NAMESPACE,
      );
      assert.equal(toldTo(other, ASSIGNED_ADDRESSES), "10.70.0.72");
      const { record } = await bound(other);
      assert.deepEqual([record.addresses, record.retention.ttlMs], [["10.70.0.72"], null]);
      const old = (await store.get("reservation", "10.70.0.71"))?.record;
      assert.ok(old === undefined || old.releasedAt !== undefined);
    });

    it("a Deployment's pod that asks by pool keeps its address as long as it lives, and no longer", async () => {
      const place = { namespace: NAMESPACE, name: "leaky" };
      await make(admin, DEPLOYMENTS, place, { spec: workloadSpec("leaky", { annotations: ASKS }) });
      const made = await madePod(plane, deploymentPod("leaky", { annotations: ASKS }), NAMESPACE);
      const { key, record } = await bound(made);
      await detached(made, record.name);
      await remove(made);
      clock.forward(PROMISE_MS);
      await eventually(
        "it is let go",
        async () => ((await store.get("claim", key)) === undefined ? true : undefined),
        LET_GO_MS,
      );
    });

    for (const phase of ["Failed", "Succeeded"] as const) {
      it(`a pod that has ${phase} lets its replacement have the only entry of the list`, async () => {
        const name = `one-${phase.toLowerCase()}`;
        const annotations = { [IPS]: phase === "Failed" ? "10.70.0.65" : "10.70.0.66" };
        const place = { namespace: NAMESPACE, name };
        const spec = { strategy: { type: "Recreate" } };
        await make(admin, DEPLOYMENTS, place, { spec: workloadSpec(name, { annotations, spec }) });
        const object = deploymentPod(name, { annotations });
        const made = await madePod(plane, object, NAMESPACE);
        const { record } = await bound(made);
        assert.match(String(await createPod(plane, object, NAMESPACE)), /is bound to pod /);
        await end(made, phase);
        await detached(made, record.name);
        const next = await eventually(
          "the replacement is let in",
          async () => {
            const got = await createPod(plane, object, NAMESPACE);
            return typeof got === "string" ? undefined : got;
          },
          LET_GO_MS,
        );
        assert.equal((await bound(next)).record.addresses.join(), annotations[IPS]);
      });
    }

    it("what is held for a pod of an owner that is not read is its own until it comes", async () => {
      const foreign = ownedBy("StatefulSet", "tidb", "apps.pingcap.com/v1alpha1");
      const objects = [
        pod("", { generateName: "edge-", annotations: ASKS, owner: ownedBy("ReplicaSet", "edge") }),
        pod("", {
          generateName: "edge-",
          annotations: { [IPS]: "10.70.0.67" },
          owner: ownedBy("ReplicaSet", "edge"),
        }),
        pod("tidb-0", { annotations: { [IPS]: "10.70.0.68" }, owner: foreign }),
      ];
      const made = [];
      for (const object of objects) made.push(await madePod(plane, object, NAMESPACE));
      await passes(2);
      for (const each of made) {
        const { record } = await bound(each);
        assert.equal(record.addresses.join(), toldTo(each, ASSIGNED_ADDRESSES));
      }
    });

    /** The garbage collector looks at everything so often, from the beginning to the end. */
    async function passes(count: number): Promise<void> {
      const first = await passesMade();
      await eventually(
        "passes were made",
        async () => ((await passesMade()) > first + count ? true : undefined),
        LET_GO_MS,
      );
    }

    async function passesMade(): Promise<number> {
      const { port } = running.webhook.address;
      const { text } = await call({ port, ca: running.ca, path: "/metrics", method: "GET" });
      return Number(/^berth_reaper_passes_total\{outcome="succeeded"\} (\d+)$/m.exec(text)?.[1] ?? 0);
    }
  });
}

function toldTo({ metadata: { annotations = {} } }: KubeItem, key: string): string {
  return annotations[key] ?? "";
}
