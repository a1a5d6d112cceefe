// SPDX-License-Identifier: Apache-2.0
// Forged reviews about a Deployment's list where Berth may read ReplicaSets: the chart's webhook.checkOwners.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { noopLogger } from "../../allocator/base/ports.ts";
import { Client } from "../../kube/api/client.ts";
import { type Connection, connect } from "../../kube/api/connection.ts";
import { CLAIMS, collectionPath, PODS, POOLS, REPLICASETS } from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { type ClusterWebhook, startWebhook } from "../../webhook/replica.ts";
import { call, podReview } from "../../webhook/testing/api-server.ts";
import { eventually } from "../support/eventually.ts";
import { deploymentPod, ownedBy, poolObject } from "../support/objects.ts";
import { accountConfig, install, installAccounts, type Manifest } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { writeCertificate } from "./replicas.ts";
import { openControlPlane } from "./shared-plane.ts";
import { registerWebhooks } from "./webhooks.ts";

const LIST = { "berth.dev/ips": "10.70.0.10;10.70.0.11" };
const NAME = "web-5d9c7b";

/** The role and the binding of the chart's template, in the namespace of these tests. */
function ownersRole(): readonly Manifest[] {
  const text = readFileSync(join(import.meta.dirname, "../../charts/berth/templates/access.yaml"), "utf8");
  const [, part = ""] = text.split("{{- if .Values.webhook.checkOwners }}");
  const plain = part
    .replaceAll("{{ .Release.Namespace }}", "berth-system")
    .replaceAll(/^ *(labels:\n *)?\{\{.*\}\}\n/gm, "");
  return parseAllDocuments(plain).flatMap((document) => (document.toJS() as Manifest | null) ?? []);
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("an entry of a list, where Berth may read ReplicaSets", () => {
    const clock = createClock();
    let plane: ControlPlane;
    let admin: Connection;
    let connection: Connection;
    let webhook: ClusterWebhook;
    let ca: string;

    before(async () => {
      plane = await openControlPlane();
      admin = plane.connect();
      await installDefinitions(admin);
      await makeNamespaces(admin, ["shop"]);
      await installAccounts(admin);
      const roles = ownersRole();
      assert.deepEqual(
        roles.map(({ kind }) => kind),
        ["ClusterRole", "ClusterRoleBinding"],
      );
      await install(admin, roles);
      const certificates = join(plane.folder, "certificates");
      mkdirSync(certificates);
      ca = await writeCertificate(certificates);
      connection = connect(await accountConfig(plane, "berth-webhook"), {
        clock,
        userAgent: "berth-webhook/test",
      });
      webhook = await startWebhook({
        ...{ connection, namespace: "berth-system", podName: "berth-0", certificates },
        ...{ host: "127.0.0.1", port: 0, departMs: 0, checkOwners: true },
        ...{ clock, random: createRandom(), log: noopLogger },
      });
      await eventually("it is ready", () => (webhook.ready().ready ? true : undefined));
      await registerWebhooks(admin, { url: `https://127.0.0.1:${webhook.address.port}`, ca });
      const pool = poolObject("web", { ranges: [{ cidr: "10.70.0.0/16" }] });
      assert.ok(await new Client(admin, POOLS).create({ name: "web" }, pool));
    });
    after(async () => {
      await webhook?.close();
      connection?.close();
      await plane?.close();
    });

    /** Sends a review straight to the webhook: its words, or "" for a pod that was given an entry. */
    async function forged(n: number): Promise<string> {
      const owner = ownedBy("ReplicaSet", NAME, "apps/v1", `guess-${n}`);
      const object = deploymentPod("web", { owner, annotations: LIST });
      const review = podReview({ name: "", namespace: "shop", object, uid: `review-${n}` });
      const { port } = webhook.address;
      const reply = await call({ port, ca, path: "/mutate/pods", body: JSON.stringify(review) });
      const { response } = JSON.parse(reply.text) as {
        response: { allowed: boolean; status?: { message: string } };
      };
      return response.allowed ? "" : (response.status?.message ?? "refused");
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
