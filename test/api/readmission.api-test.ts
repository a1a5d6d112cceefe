// SPDX-License-Identifier: Apache-2.0
// Claims that went while their pods were on their way, on a real API server: each is made again, and bound.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Store } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { itemPath, PODS, POOLS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { type Json, pod, poolObject } from "../support/objects.ts";
import { connectAs } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ACCOUNTS, CLUSTER_ROLES, ROLE_BINDINGS } from "./cluster-resources.ts";
import { makeNamespaces } from "./crds.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { makeNode } from "./replica-objects.ts";
import { createPod, madePod, type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

const NAMESPACE = "shop";

const KINDS: Readonly<Record<string, Json>> = {
  "from generateName": pod("", { generateName: "etl-", annotations: { "berth.dev/pools": "web" } }),
  "with a pool that needs the verb use": pod("clerk", {
    annotations: { "berth.dev/pools": "vault" },
    spec: { serviceAccountName: "teller" },
  }),
  "with both": pod("", {
    generateName: "clerk-",
    annotations: { "berth.dev/pools": "vault" },
    spec: { serviceAccountName: "teller" },
  }),
};

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("a claim that went while its pod was on its way", () => {
    let plane: ControlPlane;
    let admin: Connection;
    let account: Connection;
    let running: RunningWebhook;
    let store: Store;

    before(async () => {
      plane = await openControlPlane();
      admin = plane.connect();
      running = await runWebhook(plane);
      account = await connectAs(plane, "berth-webhook");
      store = openStore(account);
      await makeNamespaces(admin, [NAMESPACE]);
      await makeNode(admin, "node-a");
      await makePool("web", { ranges: [{ cidr: "10.70.0.0/24" }], cooldown: "0s" });
      const closed = { ranges: [{ cidr: "10.71.0.0/24" }], cooldown: "0s", authorization: "ServiceAccount" };
      await makePool("vault", closed);
      await letUse("vault");
      const first = pod("first", { annotations: { "berth.dev/pools": "web" } });
      await eventually("the webhook knows the pools", async () =>
        typeof (await createPod(plane, first, NAMESPACE)) === "string" ? undefined : true,
      );
    });
    after(async () => {
      await store?.close();
      await running?.close();
      await plane?.close();
    });

    async function makePool(name: string, spec: Json): Promise<void> {
      assert.ok(await new Client(admin, POOLS).create({ name }, poolObject(name, spec)));
    }

    async function letUse(pool: string): Promise<void> {
      const rules = [
        { apiGroups: ["berth.dev"], resources: ["ippools"], resourceNames: [pool], verbs: ["use"] },
      ];
      const place = { namespace: NAMESPACE, name: "teller" };
      await new Client(admin, CLUSTER_ROLES).create({ name: "teller" }, { rules });
      await new Client(admin, ACCOUNTS).create(place, {});
      const roleRef = { apiGroup: CLUSTER_ROLES.group, kind: "ClusterRole", name: "teller" };
      const subjects = [{ kind: "ServiceAccount", name: "teller", namespace: NAMESPACE }];
      await new Client(admin, ROLE_BINDINGS).create(place, { roleRef, subjects });
    }

    /** Claim and reservations go, as a release that began before the pod was stored makes them go. */
    async function letGo(claim: string): Promise<void> {
      const seen = await store.get("claim", `${NAMESPACE}/${claim}`);
      assert.ok(seen);
      await store.remove("claim", seen);
      for (const address of seen.record.addresses) {
        const reservation = await store.get("reservation", address);
        if (reservation !== undefined) await store.remove("reservation", reservation);
      }
    }

    async function schedule(name: string): Promise<void> {
      const target = { apiVersion: "v1", kind: "Node", name: "node-a" };
      const body = { apiVersion: "v1", kind: "Binding", metadata: { name }, target };
      const path = `${itemPath(PODS, { namespace: NAMESPACE, name })}/binding`;
      assert.equal((await admin.call({ method: "POST", path, body })).status, 201);
    }

    for (const [kind, object] of Object.entries(KINDS)) {
      it(`is made again and bound for a pod ${kind}`, async () => {
        const { metadata } = await madePod(plane, object, NAMESPACE);
        const { [ASSIGNED_CLAIM]: claim = "", [ASSIGNED_ADDRESSES]: addresses = "" } =
          metadata.annotations ?? {};
        await letGo(claim);
        await schedule(metadata.name);
        const bound = await eventually(
          `${metadata.name} has its claim again`,
          async (): Promise<Claim | undefined> => {
            const now = (await store.get("claim", `${NAMESPACE}/${claim}`))?.record;
            return now?.binding?.node === "node-a" ? now : undefined;
          },
          30_000,
        );
        assert.equal(bound.addresses.join(","), addresses);
        assert.equal(bound.binding?.podUID, metadata.uid);
        for (const address of bound.addresses) {
          assert.equal((await store.get("reservation", address))?.record.nonce, bound.nonce);
        }
      });
    }
  });
}
