// SPDX-License-Identifier: Apache-2.0
// Forged reviews about a Deployment's list where Berth may read ReplicaSets: the chart's webhook.checkOwners.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, collectionPath, PODS, POOLS, REPLICASETS } from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { deploymentPod, ownedBy, poolObject } from "../support/objects.ts";
import { install, roleWith } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { forgedWords, type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

const LIST = { "berth.dev/ips": "10.70.0.10;10.70.0.11" };
const NAME = "web-5d9c7b";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("an entry of a list, where Berth may read ReplicaSets", () => {
    let plane: ControlPlane;
    let admin: Connection;
    let running: RunningWebhook;

    before(async () => {
      plane = await openControlPlane();
      admin = plane.connect();
      await makeNamespaces(admin, ["shop"]);
      await install(admin, roleWith("webhook.checkOwners"));
      running = await runWebhook(plane, { checkOwners: true, policies: false });
      const pool = poolObject("web", { ranges: [{ cidr: "10.70.0.0/16" }] });
      assert.ok(await new Client(admin, POOLS).create({ name: "web" }, pool));
    });
    after(async () => {
      await running?.close();
      await plane?.close();
    });

    /** Sends a review straight to the webhook: its words, or "" for a pod that was given an entry. */
    async function forged(n: number): Promise<string> {
      const owner = ownedBy("ReplicaSet", NAME, "apps/v1", `guess-${n}`);
      return await forgedWords(running, deploymentPod("web", { owner, annotations: LIST }), `review-${n}`);
    }

    const NONE =
      "there is no ReplicaSet shop/web-5d9c7b with the UID that this pod has for its owner; an entry of a list is held for pods of an owner that is there";

    it("is held for none of the pods that a stranger makes up, before the ReplicaSet is there and after", async () => {
      assert.equal(await forged(0), NONE);
      const selector = { matchLabels: { app: "web" } };
      const containers = [{ name: "main", image: "registry.example/none" }];
      const template = { metadata: { labels: selector.matchLabels }, spec: { containers } };
      const made = await new Client(admin, REPLICASETS).create(
        { namespace: "shop", name: NAME },
        {
          apiVersion: "apps/v1",
          kind: "ReplicaSet",
          metadata: { namespace: "shop", name: NAME },
          spec: { replicas: 0, selector, template },
        },
      );
      const uid = made?.metadata.uid ?? "";
      assert.notEqual(uid, "");
      for (const n of [1, 2, 3]) assert.equal(await forged(n), NONE);
      for (const address of ["10.70.0.10", "10.70.0.11"]) {
        const owner = ownedBy("ReplicaSet", NAME, "apps/v1", uid);
        const body = deploymentPod("web", { owner, annotations: LIST });
        const answer = await admin.call({ method: "POST", path: collectionPath(PODS, "shop"), body });
        assert.equal(answer.status, 201, statusOf(answer.body, answer.status).message);
        const { annotations } = (answer.body as { metadata: { annotations: Record<string, string> } })
          .metadata;
        assert.equal(annotations["berth.dev/addresses"], address);
      }
      let claims = 0;
      for await (const { items } of new Client(admin, CLAIMS).pages({}, 500)) claims += items.length;
      assert.equal(claims, 2);
    });
  });
}
