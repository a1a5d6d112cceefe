// SPDX-License-Identifier: Apache-2.0
// What the token of the issuer, and the credentials of a kubelet, are worth to a thief: roles, policies, the authorizer of nodes and
// NodeRestriction are those of real clusters. The webhook's and the agents' tokens are in access.api-test.ts.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import type { Call, Connection } from "../../kube/api/connection.ts";
import { collectionPath, NODES, PODS } from "../../kube/api/resource.ts";
import { pod } from "../support/objects.ts";
import { connectAs, installAccounts, installPolicies } from "./accounts.ts";
import { merge, reported } from "./agent-calls.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { KUBELET, openControlPlane } from "./shared-plane.ts";

const BERTH = "/apis/berth.dev/v1alpha1";
const OWN = "/api/v1/namespaces/berth-system";
const SHOP = "/api/v1/namespaces/shop";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const SIGNING = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

const get = (path: string): Call => ({ method: "GET", path });
const post = (path: string, body: object = {}): Call => ({ method: "POST", path, body });
const drop = (path: string): Call => ({ method: "DELETE", path });

const PLACES = { "berth-agent": "node-a", "berth-webhook": "node-b", "berth-issuer": "node-b" };

/** Every record of Berth's, read, made, changed and removed, with its status. */
const RECORDS: readonly Call[] = [
  [`${BERTH}/ippools`, `${BERTH}/ippools/web`],
  [`${BERTH}/ipreservations`, `${BERTH}/ipreservations/10.20.0.70`],
  [`${BERTH}/ipblocks`, `${BERTH}/ipblocks/10.30.0.0-28`],
  [`${BERTH}/namespaces/shop/ipclaims`, `${BERTH}/namespaces/shop/ipclaims/mysql-0`],
].flatMap(([all = "", one = ""]) => [
  ...[get(all), get(one), post(all), merge(one), merge(`${one}/status`), drop(one)],
]);

/** What makes somebody else of a thief, or everything possible. */
const MORE_RIGHTS: readonly Call[] = [
  ...["berth-webhook", "berth-issuer", "berth-agent", "default"].map((account) =>
    post(`${OWN}/serviceaccounts/${account}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {},
    }),
  ),
  ...["clusterroles", "clusterrolebindings"].flatMap((kind) => [
    post(`${RBAC}/${kind}`),
    merge(`${RBAC}/${kind}/berth-issuer`),
  ]),
  ...["roles", "rolebindings"].map((kind) => merge(`${RBAC}/namespaces/berth-system/${kind}/berth-issuer`)),
  ...["validatingadmissionpolicies", "validatingadmissionpolicybindings"].flatMap((kind) => [
    merge(`${ADMISSION}/${kind}/trust.berth.dev`),
    drop(`${ADMISSION}/${kind}/trust.berth.dev`),
  ]),
  merge("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ipclaims.berth.dev"),
  merge("/apis/apps/v1/namespaces/berth-system/deployments/berth-webhook"),
  merge("/api/v1/namespaces/shop", { metadata: { labels: { "berth.dev/admission": "disabled" } } }),
];

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("stolen credentials", () => {
    let plane: ControlPlane;
    let admin: Connection;

    before(async () => {
      plane = await openControlPlane();
      admin = plane.connect();
      await installDefinitions(admin);
      await makeNamespaces(admin, ["shop"]);
      await installAccounts(admin);
      for (const name of ["node-a", "node-b"]) await new Client(admin, NODES).create({ name }, {});
      // the agent on the thief's node, the others elsewhere; with the volume that Kubernetes gives to every pod
      for (const [account, nodeName] of Object.entries(PLACES)) {
        const sources = [{ serviceAccountToken: { path: "token" } }];
        const volumes = [{ name: "kube-api-access", projected: { sources } }];
        const spec = { serviceAccountName: account, nodeName, volumes };
        const body = pod(account, { namespace: "berth-system", spec });
        assert.equal((await admin.call(post(collectionPath(PODS, "berth-system"), body))).status, 201);
      }
      for (const [name, nodeName] of Object.entries({ mine: "node-a", victim: "node-b" })) {
        const body = pod(name, { spec: { nodeName } });
        const made = await admin.call(post(collectionPath(PODS, "shop"), body));
        assert.equal(made.status, 201);
      }
      for (const name of ["berth-webhook-ca", "berth-webhook-tls"]) {
        const body = { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData: { a: "b" } };
        assert.equal((await admin.call(post(`${OWN}/secrets`, body))).status, 201);
      }
      await installPolicies(admin);
    });
    after(() => plane?.close());

    /** By an authorizer or by admission: nothing was looked for before. */
    async function refuses(by: Connection, calls: readonly Call[]): Promise<void> {
      for (const call of calls)
        assert.match(await reported(by, call), /^403 /, `${call.method} ${call.path}`);
    }

    describe("the issuer's token", () => {
      let issuer: Connection;
      before(async () => {
        issuer = await connectAs(plane, "berth-issuer");
      });

      it("reads and changes its two Secrets, and no other, and makes and removes none", async () => {
        for (const name of ["berth-webhook-ca", "berth-webhook-tls"]) {
          assert.equal(await reported(issuer, get(`${OWN}/secrets/${name}`)), "200");
          assert.equal(await reported(issuer, merge(`${OWN}/secrets/${name}`)), "200");
          await refuses(issuer, [drop(`${OWN}/secrets/${name}`), get(`${SHOP}/secrets/${name}`)]);
        }
        await refuses(issuer, [
          ...[get(`${OWN}/secrets`), get(`${OWN}/secrets/other`), merge(`${OWN}/secrets/other`)],
          ...[post(`${OWN}/secrets`), drop(`${OWN}/secrets`), get("/api/v1/secrets")],
        ]);
      });

      it("touches no record of Berth's", async () => {
        await refuses(issuer, RECORDS);
      });

      it("makes nobody else of the thief: no token, role, policy, kind or workload", async () => {
        await refuses(issuer, MORE_RIGHTS);
        await refuses(issuer, [post(SIGNING), merge(`${SIGNING}/x/approval`)]);
        const resourceAttributes = { verb: "impersonate", resource: "users" };
        const asked = post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
          ...{ apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" },
          spec: { resourceAttributes },
        });
        const { body } = await issuer.call(asked);
        assert.equal((body as { status: { allowed: boolean } }).status.allowed, false);
      });

      it("reads no pod, node or namespace, and writes none", async () => {
        await refuses(issuer, [
          ...["pods", "nodes", "namespaces", "configmaps", "services"].map((kind) => get(`/api/v1/${kind}`)),
          ...[post(`${SHOP}/pods`), post(`${OWN}/pods`), drop(`${SHOP}/pods/victim`)],
          ...[
            post(`${SHOP}/pods/victim/exec`),
            get(`${SHOP}/pods/victim/log`),
            merge("/api/v1/nodes/node-a"),
          ],
          ...[merge(`${OWN}/services/berth-webhook`), post(`${OWN}/services`), merge(`${OWN}/configmaps/x`)],
          post("/apis/events.k8s.io/v1/namespaces/shop/events"),
        ]);
      });
    });

    describe("a kubelet's credentials", () => {
      let kubelet: Connection;
      before(() => {
        kubelet = plane.connect(KUBELET.name);
      });

      it("touch no record of Berth's", async () => {
        await refuses(kubelet, RECORDS);
      });

      it("read none of Berth's Secrets, and change neither trust nor policies", async () => {
        await refuses(kubelet, [
          ...["berth-webhook-ca", "berth-webhook-tls"].flatMap((name) => [
            get(`${OWN}/secrets/${name}`),
            merge(`${OWN}/secrets/${name}`),
          ]),
          ...["mutatingwebhookconfigurations", "validatingwebhookconfigurations"].flatMap((kind) => [
            get(`${ADMISSION}/${kind}/berth`),
            merge(`${ADMISSION}/${kind}/berth`),
          ]),
        ]);
      });

      it("get a token of Berth's accounts for a pod of their own node, the agent's, and for no other", async () => {
        const tokenFor = async (account: string) => {
          const { metadata } =
            (await new Client(admin, PODS).get({ namespace: "berth-system", name: account })) ?? {};
          const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: account, uid: metadata?.uid };
          return post(`${OWN}/serviceaccounts/${account}/token`, {
            apiVersion: "authentication.k8s.io/v1",
            kind: "TokenRequest",
            spec: { boundObjectRef, audiences: [] },
          });
        };
        assert.equal(await reported(kubelet, await tokenFor("berth-agent")), "201");
        for (const account of ["berth-webhook", "berth-issuer"]) {
          const said = await reported(kubelet, await tokenFor(account));
          assert.match(said, /^403 .*no relationship found between node 'node-a' and this object/);
        }
        await refuses(kubelet, MORE_RIGHTS);
      });

      it("make no pod but a mirror pod of their node, and change and remove none of another node", async () => {
        const on = (nodeName: string, more = {}) => pod("forged", { spec: { nodeName }, ...more });
        const annotations = { "kubernetes.io/config.mirror": "x" };
        await refuses(kubelet, [
          post(`${SHOP}/pods`, on("node-a")),
          post(
            `${OWN}/pods`,
            pod("forged", {
              namespace: "berth-system",
              spec: { nodeName: "node-a", serviceAccountName: "berth-webhook" },
            }),
          ),
          post(`${SHOP}/pods`, on("node-b", { annotations })),
          post(
            `${OWN}/pods`,
            pod("forged", {
              namespace: "berth-system",
              annotations,
              spec: { nodeName: "node-a", serviceAccountName: "berth-webhook" },
            }),
          ),
          ...[merge(`${SHOP}/pods/victim/status`, { status: { podIP: "10.20.0.71" } })],
          ...[drop(`${SHOP}/pods/victim`), post(`${SHOP}/pods/victim/eviction`), get(`${OWN}/pods/x/log`)],
        ]);
        const status = { podIP: "10.20.0.71", podIPs: [{ ip: "10.20.0.71" }] };
        assert.equal(await reported(kubelet, merge(`${SHOP}/pods/mine/status`, { status })), "200");
      });

      it("fence no other node, and take no taint from their own", async () => {
        const annotations = { "berth.dev/fenced": "true" };
        const taints = [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }];
        const nodes = "/api/v1/nodes";
        assert.equal(await reported(admin, merge(`${nodes}/node-a`, { spec: { taints } })), "200");
        await refuses(kubelet, [
          merge(`${nodes}/node-b`, { metadata: { annotations } }),
          merge(`${nodes}/node-b/status`, { metadata: { annotations } }),
          merge(`${nodes}/node-b`, { spec: { taints } }),
          merge(`${nodes}/node-a`, { spec: { taints: [] } }),
          ...[drop(`${nodes}/node-a`), drop(`${nodes}/node-b`), post(nodes, nodeObject("node-z"))],
        ]);
      });

      it("choose labels of their own node, by which pools are for it, but those that are kept from nodes", async () => {
        const labelled = (key: string) =>
          merge("/api/v1/nodes/node-a", { metadata: { labels: { [key]: "x" } } });
        assert.equal(await reported(kubelet, labelled("zone")), "200");
        await refuses(kubelet, [labelled("node-restriction.kubernetes.io/zone")]);
      });

      it("sign no certificate of an API server", async () => {
        await refuses(kubelet, [merge(`${SIGNING}/x/approval`, {}), merge(`${SIGNING}/x/status`, {})]);
      });
    });

    function nodeObject(name: string): object {
      return { apiVersion: "v1", kind: NODES.kind, metadata: { name } };
    }
  });
}
