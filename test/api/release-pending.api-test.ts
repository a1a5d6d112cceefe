// SPDX-License-Identifier: Apache-2.0
// The claim of a pod that is not scheduled: a real API server, the webhook with its controllers, kubectl and berthctl.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { type Json, ownedBy, pod } from "../support/objects.ts";
import { callWith, kubeconfigOf, settingOf } from "./berthctl-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { kubectlOn } from "./kubectl-calls.ts";
import { POOL_OBJECTS } from "./manifests.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the claim of a pod that is not scheduled", () => {
    let cluster: WebhookCluster;

    before(async () => {
      cluster = await WebhookCluster.open();
      for (const object of POOL_OBJECTS) assert.equal(await apply(object), "");
    });
    after(() => cluster?.close());

    const { kubectl, apply } = kubectlOn(() => cluster.plane);

    async function berthctl(...argv: readonly string[]) {
      return await callWith(settingOf([kubeconfigOf(cluster.plane, "admin")]), ...argv);
    }

    const claim = async (name: string) => {
      const found = await new Client(cluster.admin, CLAIMS).get({ namespace: "shop", name });
      return found?.metadata["deletionTimestamp"] === undefined ? found : undefined;
    };
    const asking = (name: string, address: string, owner?: Json) =>
      pod(name, { annotations: { "berth.dev/ips": address }, ...(owner === undefined ? {} : { owner }) });

    it("is not released while the pod is there, for it would be made again, and is free after the pod", async () => {
      assert.equal(await apply(asking("waits", "10.20.0.70")), "");
      const refused = await apply(asking("wants", "10.20.0.70"));
      assert.match(refused, /held by shop\/waits \(Pod waits\); free nearby: /);
      assert.match(refused, /; or delete pod waits, and if its claim stays: berthctl release shop\/waits$/);
      for (const flags of [[], ["--dry-run"]])
        assert.deepEqual(await berthctl("release", "shop/waits", ...flags), {
          code: 1,
          stdout: "",
          stderr:
            "Error: claim shop/waits (10.20.0.70) is kept for pod waits, which is there and asks for it: Berth would make it again at once; delete the pod first, or create it anew with other annotations\n",
        });
      assert.ok(await claim("waits"));
      await kubectl(["delete", "pod", "waits", "-n", "shop", "--force", "--grace-period=0"]);
      const { code, stdout, stderr } = await berthctl("release", "shop/waits");
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(stdout, /^ipclaim\/shop\/waits released\n {2}10\.20\.0\.70 is free for others in \d+ s, /);
      assert.equal(await claim("waits"), undefined);
    });

    it("of an owner is kept for it until the owner wants fewer", async () => {
      await apply(asking("web-x", "10.20.0.72", ownedBy("ReplicaSet", "web")));
      const path = "{.metadata.annotations.berth\\.dev/claim}";
      const { stdout: name } = await kubectl(["get", "pod", "web-x", "-n", "shop", "-o", `jsonpath=${path}`]);
      const { code, stderr } = await berthctl("release", `shop/${name}`);
      assert.equal(code, 1);
      assert.match(stderr, /; scale ReplicaSet web down first, or change what its template asks for\n$/);
    });

    it("is made again where somebody insists, and berthctl and kubectl say so", async () => {
      assert.equal(await apply(asking("stays", "10.20.0.71")), "");
      const before = (await claim("stays"))?.metadata.uid;
      const { code, stdout, stderr } = await berthctl("release", "shop/stays", "--force");
      assert.deepEqual(
        [code, stdout],
        [0, "ipclaim/shop/stays released\n  10.20.0.71 is given back, and asked for again\n"],
      );
      const words = (what: string) =>
        `Warning: pod shop/stays is there and asks for ${what}: BERTH again, with these addresses if nobody else has them; delete the pod to free them`;
      assert.equal(stderr.trim(), words("it").replace("BERTH", "Berth makes the claim"));
      const again = await eventually("the claim is there again", async () => {
        const uid = (await claim("stays"))?.metadata.uid;
        return uid !== undefined && uid !== before ? uid : undefined;
      });
      const deleted = await kubectl(["delete", "ipclaim", "stays", "-n", "shop", "--wait=false"]);
      assert.equal(deleted.stderr.trim(), words("claim shop/stays").replace("BERTH", "berth makes it"));
      await eventually("it is there once more", async () => {
        const uid = (await claim("stays"))?.metadata.uid;
        return uid !== undefined && uid !== again ? true : undefined;
      });
    });
  });
}
