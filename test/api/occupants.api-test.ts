// SPDX-License-Identifier: Apache-2.0
// A pool over addresses that a cluster's nodes, another CNI's pods and its Services have, on a real API server.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Connection } from "../../kube/api/connection.ts";
import { type ObjectName, PODS, SERVICES } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { pod } from "../support/objects.ts";
import { merge } from "./agent-calls.ts";
import { callWith, kubeconfigOf, settingOf } from "./berthctl-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { FIELDS_UNSEEN } from "./plane.ts";
import { forceDelete, make, makeNode, makePod } from "./replica-objects.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

const LAN = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "IPPool",
  metadata: { name: "lan" },
  spec: { ranges: [{ cidr: "10.9.0.0/29" }] },
};
const FOREIGN = { namespace: "shop", name: "calico" };

async function status(admin: Connection, path: string, body: object): Promise<void> {
  assert.equal((await admin.call(merge(`${path}/status`, { status: body }))).status, 200);
}

/** A node, a pod and a Service, each with one of the pool's addresses. */
async function occupy(admin: Connection): Promise<void> {
  await makeNode(admin, "node-a");
  await status(admin, "/api/v1/nodes/node-a", { addresses: [{ type: "InternalIP", address: "10.9.0.1" }] });
  await makePod(admin, FOREIGN, { node: "node-a" });
  await status(admin, "/api/v1/namespaces/shop/pods/calico", {
    phase: "Running",
    podIP: "10.9.0.2",
    podIPs: [{ ip: "10.9.0.2" }],
  });
  const spec = { ports: [{ port: 80 }], externalIPs: ["10.9.0.3"] };
  await make(admin, SERVICES, { namespace: "shop", name: "web" }, { spec });
}

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("a pool over addresses that others have", () => {
    let cluster: WebhookCluster;

    before(async () => {
      cluster = await WebhookCluster.open({ prepare: occupy });
    });
    after(() => cluster?.close());

    async function applied(object: object) {
      return await cluster.plane.kubectl(["apply", FIELDS_UNSEEN, "-f", "-"], {
        stdin: JSON.stringify(object),
      });
    }

    const asking = (name: string, annotations: Readonly<Record<string, string>>) => ({
      apiVersion: "v1",
      ...pod(name, { annotations }),
      spec: { containers: [{ name: "main", image: "registry.example/app:1" }] },
    });

    it("is told which, and of the Services' network", async () => {
      const { rc, stdout, stderr } = await applied(LAN);
      assert.equal(rc, 0, stderr);
      assert.match(stdout, /ippool\.berth\.dev\/lan created/);
      assert.match(
        stderr,
        /Warning: pool lan has 3 addresses that are in use, and not from Berth: 10\.9\.0\.1 \(node node-a\), 10\.9\.0\.2 \(pod shop\/calico\), 10\.9\.0\.3 \(service shop\/web\)/,
      );
      const cidrs = await cluster.plane.kubectl([
        "get",
        "servicecidr",
        "kubernetes",
        "-o",
        "jsonpath={.spec.cidrs[0]}",
      ]);
      const [base = ""] = cidrs.stdout.split("/");
      const spec = { ranges: [{ cidr: `${base}/29` }] };
      const over = await applied({ ...LAN, metadata: { name: "over" }, spec });
      assert.match(
        over.stderr,
        /Warning: pool over has addresses of [\d./]+, from which the cluster's Services get/,
      );
      await cluster.plane.kubectl(["delete", "ippool", "over"]);
    });

    it("refuses them by name, and gives others to who names none", async () => {
      const node = await applied(asking("by-name", { "berth.dev/ips": "10.9.0.1" }));
      assert.match(node.stderr, /10\.9\.0\.1 in pool "lan" is in use by node node-a, and not from Berth/);
      const other = await applied(asking("by-name", { "berth.dev/ips": "10.9.0.2" }));
      assert.match(
        other.stderr,
        /10\.9\.0\.2 in pool "lan" is in use by pod shop\/calico, and not from Berth/,
      );
      for (const name of ["a", "b", "c", "d"]) {
        const { rc, stderr } = await applied(asking(name, { "berth.dev/pools": "lan" }));
        assert.equal(rc, 0, stderr);
      }
      const held = await cluster.plane.kubectl([
        "get",
        "ipreservations",
        "-o",
        "jsonpath={.items[*].metadata.name}",
      ]);
      assert.deepEqual(held.stdout.split(" ").sort(), ["10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6"]);
      const full = await applied(asking("e", { "berth.dev/pools": "lan" }));
      assert.match(
        full.stderr,
        /no free IPv4 address in pool "lan": 4 are held or cooling, 2 are in use by what is not/,
      );
    });

    it("is a finding of check, and who names the holder", async () => {
      const setting = settingOf([kubeconfigOf(cluster.plane, "admin")]);
      const { code, stdout } = await callWith(setting, "check");
      assert.equal(code, 0, stdout);
      assert.match(
        stdout,
        /^pending +in-use +pool lan has 2 addresses that are in use, and not from Berth: 10\.9\.0\.1 \(node node-a\), 10\.9\.0\.2 \(pod shop\/calico\);/m,
      );
      assert.match(
        stdout,
        /^pending +two-holders +10\.9\.0\.3 \(service shop\/web\) is claim shop\/[a-d]'s too/m,
      );
      assert.match(
        stdout,
        /^ok, but .*1 pool has addresses that others use and 1 address has two holders: 1 pool, /m,
      );
      const who = await callWith(setting, "who", "10.9.0.2");
      assert.equal(
        who.stdout,
        "10.9.0.2 is in use, and not from Berth\n  pool        lan\n  in use by   pod shop/calico\n",
      );
    });

    it("gives a pod's address once that has gone", async () => {
      await forceDelete(cluster.admin, PODS, FOREIGN satisfies ObjectName);
      await eventually("the address is free", async () => {
        const { rc } = await applied(asking("by-name", { "berth.dev/ips": "10.9.0.2" }));
        return rc === 0 ? true : undefined;
      });
    });
  });
}
