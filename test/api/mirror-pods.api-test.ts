// SPDX-License-Identifier: Apache-2.0
// What somebody with a node's credentials makes the API server believe of static pods: its authorizer and its admission are those
// of real clusters, and no webhook is asked about such pods.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { collectionPath, itemPath, type KubeItem, NODES, PODS } from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { eventually } from "../support/eventually.ts";
import { pod } from "../support/objects.ts";
import { install, installPolicies, manifestsOf, resourceOfManifest } from "./accounts.ts";
import { merge, reported } from "./agent-calls.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { KUBELET, openControlPlane } from "./shared-plane.ts";

const POLICY = "mirrors.pods.berth.dev";
const FORGED = {
  "berth.dev/claim": "mysql-0",
  "berth.dev/addresses": "10.20.0.71",
  "berth.dev/token": "stolen",
};

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("mirror pods, made by a kubelet", () => {
    let plane: ControlPlane;
    let kubelet: Connection;
    let node: KubeItem;

    before(async () => {
      plane = await openControlPlane();
      const admin = plane.connect();
      await installDefinitions(admin);
      await makeNamespaces(admin, ["shop", "berth-system"]);
      await installPolicies(admin);
      const nodes = new Client(admin, NODES);
      node = (await nodes.create({ name: "node-a" }, {})) ?? assert.fail("no node");
      kubelet = plane.connect(KUBELET.name);
    });
    after(() => plane?.close());

    /** "" when the API server has it, else why not. */
    async function cache(
      namespace: string,
      annotations: Readonly<Record<string, string>>,
      by = kubelet,
    ): Promise<string> {
      const owner = {
        apiVersion: "v1",
        kind: "Node",
        name: "node-a",
        uid: node.metadata.uid,
        controller: true,
      };
      const made = pod("", {
        generateName: "static-",
        namespace,
        annotations: { "kubernetes.io/config.mirror": "0123", ...annotations },
        spec: { nodeName: "node-a" },
      });
      const metadata = { ...(made["metadata"] as object), ownerReferences: [owner] };
      const body = { ...made, metadata };
      const path = collectionPath(PODS, namespace);
      // it comes to be only if nobody objects; nothing here needs it afterwards
      const answer = await by.call({ method: "POST", path, query: { dryRun: "All" }, body });
      return answer.status < 300 ? "" : statusOf(answer.body, answer.status).message;
    }

    const refused = new RegExp(
      `ValidatingAdmissionPolicy '${POLICY}' with binding '${POLICY}' denied request: a static pod, or one with hostNetwork, has no claim`,
    );

    it("are admitted without annotations of Berth's, and with those that ask: its agent refuses to start such", async () => {
      for (const namespace of ["shop", "kube-system", "berth-system"]) {
        assert.equal(await cache(namespace, {}), "");
        assert.equal(await cache(namespace, { "berth.dev/ips": "10.20.0.71" }), "");
      }
    });

    it("are refused with any annotation that Berth writes, in every namespace, whoever makes them", async () => {
      for (const [key, value] of Object.entries(FORGED)) {
        for (const namespace of ["shop", "kube-system", "berth-system"])
          assert.match(await cache(namespace, { [key]: value }), refused, key);
        assert.match(await cache("shop", { [key]: value }, plane.connect()), refused, key);
      }
    });

    it("are refused so as pods on their node's network are, which no webhook is asked about either", async () => {
      const path = collectionPath(PODS, "shop");
      const onHost = async (annotations: Readonly<Record<string, string>> | undefined) => {
        const spec = { hostNetwork: true };
        const body = pod("on-host", { spec, ...(annotations && { annotations }) });
        const query = { dryRun: "All" };
        const answer = await plane.connect().call({ method: "POST", path, query, body });
        return answer.status < 300 ? "" : statusOf(answer.body, answer.status).message;
      };
      assert.equal(await onHost(undefined), "");
      assert.equal(await onHost({ app: "x" }), "");
      for (const [key, value] of Object.entries(FORGED))
        assert.match(await onHost({ [key]: value }), refused, key);
    });

    it("get none of them later", async () => {
      const admin = plane.connect();
      const made = pod("quiet", {
        annotations: { "kubernetes.io/config.mirror": "0123" },
        spec: { nodeName: "node-a" },
      });
      assert.ok(
        (await admin.call({ method: "POST", path: collectionPath(PODS, "shop"), body: made })).status < 300,
      );
      for (const [key, value] of Object.entries(FORGED)) {
        const path = itemPath(PODS, { namespace: "shop", name: "quiet" });
        const body = { metadata: { annotations: { [key]: value } } };
        for (const [by, to] of [
          [admin, path],
          [kubelet, `${path}/status`],
        ] as const) {
          assert.match(await reported(by, merge(to, body)), /^403 .*changes\.pods\.berth\.dev/);
        }
      }
    });

    it("would be believed without the policy: nothing of the API server's own stands in the way", async () => {
      const admin = plane.connect();
      const binding = manifestsOf("policies").find(
        ({ kind, metadata }) => metadata.name === POLICY && kind === "ValidatingAdmissionPolicyBinding",
      );
      assert.ok(binding);
      const path = itemPath(resourceOfManifest(binding), { name: POLICY });
      assert.ok((await admin.call({ method: "DELETE", path })).status < 300);
      await eventually("the policy is off", async () =>
        (await cache("shop", FORGED)) === "" ? true : undefined,
      );
      await install(admin, [binding]);
      await eventually("it is on", async () =>
        refused.test(await cache("shop", FORGED)) ? true : undefined,
      );
    });
  });
}
