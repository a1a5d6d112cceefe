// SPDX-License-Identifier: Apache-2.0
// Annotations of a pod that is there, changed by whatever resource annotations can be changed by: a real API server with the chart's
// conditions and policies, and the webhook.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import type { Answer, Connection } from "../../kube/api/connection.ts";
import { POOLS } from "../../kube/api/resource.ts";
import { poolRecord } from "../support/fixtures.ts";
import { merge } from "./agent-calls.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { make, makePod } from "./replica-objects.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

const SHOP = "shop";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const OWN = "10.20.0.77";
const MAC = "02:00:00:00:00:51";

/** What a pod that is there must not come to ask for: an address, a pool or a MAC address of Berth's, in whoever's words. */
const REFUSED: readonly Labels[] = [
  { "berth.dev/ips": OWN },
  { "berth.dev/sticky": "true" },
  { "cni.projectcalico.org/ipAddrs": `["${OWN}"]` },
  { "cni.projectcalico.org/ipv4pools": '["db"]' },
  { "cni.projectcalico.org/ipAddrsNoIpam": `["${OWN}"]` },
  { "cni.projectcalico.org/floatingIPs": `["${OWN}"]` },
  { "cni.projectcalico.org/hwAddr": MAC },
  { "ovn.kubernetes.io/ip_address": OWN },
  { "ovn.kubernetes.io/ip_pool": "db" },
  { "ovn.kubernetes.io/mac_address": MAC },
  { "lan.shop.kubernetes.io/ip_address": OWN },
  { "lan.shop.kubernetes.io/mac_address": MAC },
  { "ipam.antrea.io/ippools": "db" },
  { "ipam.spidernet.io/ippool": '{"ipv4":["db"]}' },
  { "networking.alibaba.com/ip": OWN },
  { "networking.alibaba.com/mac-pool": MAC },
  { "ipam.cilium.io/ip-pool": "db" },
  { "cni.cilium.io/mac-address": MAC },
  { [NETWORKS]: `[{"name":"lan","ips":["${OWN}"]}]` },
  { [NETWORKS]: `[{"name":"lan","mac":"${MAC}"}]` },
  { "static-ipam.ipv4": OWN },
  { "kube-ipam.ip": OWN },
];

/** What is another system's, and what that has written itself. */
const LET: readonly Labels[] = [
  { note: "x" },
  { "cni.projectcalico.org/ipAddrs": '["10.99.0.7"]' },
  { "cni.projectcalico.org/hwAddr": "04:00:00:00:00:51" },
  { "cni.projectcalico.org/podIP": OWN },
  { "ovn.kubernetes.io/ip_address": OWN, "ovn.kubernetes.io/allocated": "true" },
  { "lan.shop.kubernetes.io/ip_address": OWN, "lan.shop.kubernetes.io/allocated": "true" },
  { "k8s.v1.cni.cncf.io/network-status": `[{"name":"lan","ips":["${OWN}"]}]` },
  { [NETWORKS]: "lan,other" },
];

async function makePools(admin: Connection): Promise<void> {
  const macs = poolRecord("macs", [], {
    ranges: [{ cidr: "fe80::/64", from: "fe80::ff:fe00:0", to: "fe80::ff:fe00:ff" }],
    reserved: ["fe80::ff:fe00:0-fe80::ff:fe00:ff"],
  });
  for (const { name, spec } of [poolRecord("db", "10.20.0.0/24"), macs])
    await make(admin, POOLS, { name }, { spec: { ...spec } });
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("annotations of a pod that is there, on a real API server", () => {
    let cluster: WebhookCluster;
    const has = { [NETWORKS]: "lan" };

    before(async () => {
      cluster = await WebhookCluster.open({ namespaces: [SHOP], policies: true, prepare: makePools });
      const { admin } = cluster;
      await makePod(admin, { namespace: SHOP, name: "plain" }, { annotations: has });
      const asked = { ...has, "berth.dev/ips": "10.20.0.7" };
      await makePod(admin, { namespace: SHOP, name: "served" }, { annotations: asked });
    });
    after(() => cluster?.close());

    async function annotate(name: string, annotations: object, subresource = ""): Promise<Answer> {
      const path = `/api/v1/namespaces/${SHOP}/pods/${name}${subresource}`;
      return await cluster.admin.call(merge(path, { metadata: { annotations } }));
    }

    for (const asked of REFUSED) {
      const [key = "", value = ""] = Object.entries(asked)[0] ?? [];
      it(`do not come to ask for what is Berth's: ${key}: ${value}`, async () => {
        for (const name of ["plain", "served"])
          for (const subresource of ["", "/status"]) {
            const { status, body } = await annotate(name, asked, subresource);
            const { message = "" } = body as { readonly message?: string };
            assert.equal(status, 403, `${name}${subresource}: ${message}`);
            assert.match(message, /is read when the pod is created|may give it to another pod/, key);
          }
      });
    }

    it("do not come with the Binding of the pod", async () => {
      for (const annotations of REFUSED) {
        const { status, body } = await cluster.admin.call({
          method: "POST",
          path: `/api/v1/namespaces/${SHOP}/pods/plain/binding`,
          body: {
            apiVersion: "v1",
            kind: "Binding",
            metadata: { name: "plain", annotations },
            target: { kind: "Node", name: "n1" },
          },
        });
        assert.equal(status, 403, JSON.stringify(body));
      }
    });

    for (const added of LET)
      it(`change as others write them: ${JSON.stringify(added)}`, async () => {
        for (const [name, subresource] of [
          ["plain", ""],
          ["plain", "/status"],
          ["served", ""],
        ] as const) {
          // what another system would give a pod of Berth's is for nobody to write
          if (name === "served" && "cni.projectcalico.org/ipAddrs" in added) continue;
          const { status, body } = await annotate(name, added, subresource);
          assert.equal(status, 200, JSON.stringify(body));
          const gone = Object.fromEntries(
            Object.keys(added).map((key) => [key, key === NETWORKS ? "lan" : null]),
          );
          assert.equal((await annotate(name, gone, subresource)).status, 200);
        }
      });
  });
}
