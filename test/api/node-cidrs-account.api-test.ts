// SPDX-License-Identifier: Apache-2.0
// What whoever has the webhook's token can write of a Node, where Berth gives Nodes their CIDRs.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import type { Call } from "../../kube/api/connection.ts";
import { collectionPath, itemPath, NODES } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { merge } from "./agent-calls.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { NodeCidrCluster } from "./node-cidr-cluster.ts";

type Json = Readonly<Record<string, unknown>>;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("CIDRs of Nodes, and the account that writes them", () => {
    let world: NodeCidrCluster;
    before(async () => {
      world = await NodeCidrCluster.open();
    });
    after(() => world?.close());
    afterEach(() => world.clear());

    it("are all that the account writes of a Node, whose token was stolen", async () => {
      await world.addNode("a", { keep: "1" });
      await world.cluster.patch(NODES, "a", { metadata: { annotations: { keep: "1" } } });
      const patch = async (body: Json, subresource = "") => {
        const path = `${itemPath(NODES, { name: "a" })}${subresource}`;
        return (await world.account.call(merge(path, body))).status;
      };
      const refused: readonly Json[] = [
        { metadata: { labels: { keep: "2" } } },
        { metadata: { annotations: { "berth.dev/fenced": "true" } } },
        { metadata: { annotations: { "network.cilium.io/ipv4-pod-cidr": "10.0.0.0/8" } } },
        { metadata: { annotations: { "berth.dev/pod-cidrs": "10.0.0.0/8" } } },
        { metadata: { annotations: null } },
        { metadata: { labels: null } },
        { metadata: { finalizers: ["example.org/a"] } },
        { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "b", uid: "b" }] } },
        { spec: { unschedulable: true } },
        { spec: { taints: [{ key: "a", effect: "NoExecute" }] } },
        { spec: { providerID: "x" } },
        { spec: { podCIDRs: ["10.244.0.0/24"], podCIDR: "10.244.0.0/24", providerID: "x" } },
        { spec: { podCIDRs: ["10.244.0.0/24"], podCIDR: "10.244.0.0/24", unschedulable: true } },
      ];
      let n = 0;
      await eventually("the policy is in force", async () => {
        const labels = { keep: `changed-${++n}` }; // what changes nothing is allowed
        return (await patch({ metadata: { labels } })) === 403 ? true : undefined;
      });
      for (const body of refused) assert.equal(await patch(body), 403, JSON.stringify(body));
      assert.equal(await patch({ status: { nodeInfo: {} } }, "/status"), 403);
      const path = itemPath(NODES, { name: "a" });
      const mine = await world.node("a");
      const others: readonly Call[] = [
        // the other ways to patch, and to write
        ...["application/json-patch+json", "application/strategic-merge-patch+json"].map((contentType) => {
          const ops = [{ op: "add", path: "/spec/unschedulable", value: true }];
          const body = contentType.includes("json-patch") ? ops : { spec: { unschedulable: true } };
          return { method: "PATCH", path, contentType, body } as const;
        }),
        {
          ...{ method: "PATCH", path, contentType: "application/apply-patch+yaml" },
          ...{ query: { fieldManager: "thief", force: "true" } },
          body: { ...mine, metadata: { name: "a", labels: { keep: "2" } }, spec: { unschedulable: true } },
        },
        { method: "PUT", path, body: { ...mine, spec: { ...mine.spec, unschedulable: true } } },
        { method: "DELETE", path },
        { method: "DELETE", path: collectionPath(NODES) },
        { method: "POST", path: collectionPath(NODES), body: { metadata: { name: "forged" } } },
        { method: "GET", path: `${path}/proxy/pods` },
      ];
      for (const call of others)
        assert.equal(
          (await world.account.call(call)).status,
          403,
          `${call.method} ${call.contentType ?? call.path}`,
        );
      const cidr = "10.244.0.0/24";
      const reported = {
        spec: { podCIDR: cidr, podCIDRs: [cidr] },
        metadata: { annotations: { "network.cilium.io/ipv4-pod-cidr": cidr } },
      };
      assert.equal(await patch(reported), 200);
      assert.equal(await patch(reported), 200);
      assert.ok(
        [403, 422].includes(await patch({ spec: { podCIDR: "10.9.0.0/24", podCIDRs: ["10.9.0.0/24"] } })),
      );
      assert.ok(
        [403, 409, 422].includes(await patch({ metadata: { uid: "11111111-2222-3333-4444-555555555555" } })),
      );
    });
  });
}
