// SPDX-License-Identifier: Apache-2.0
// What one namespace may have of a pool, on a real API server with two replicas of the webhook.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS, itemPath, POOLS, RESERVATIONS, STATEFULSETS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { type Json, pod, poolObject, workload } from "../support/objects.ts";
import { runsOf } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { listItems } from "./list-items.ts";
import { make } from "./replica-objects.ts";
import { createPod } from "./running-webhook.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

const LIMIT = 2;
const AT_ONCE = 40;
const REPLICAS = runsOf(60, 15);

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("limits of a pool", () => {
    let cluster: WebhookCluster;

    before(async () => {
      cluster = await WebhookCluster.open({ namespaces: ["shop", "bank"], count: 2 });
      await makePool("few", { ranges: [{ cidr: "10.70.0.0/24" }], limits: { perNamespace: LIMIT } });
      await makePool("wide", { ranges: [{ cidr: "10.71.0.0/24" }] });
      const first = pod("first", { annotations: { "berth.dev/pools": "few" } });
      await eventually("the webhook knows the pools", async () =>
        typeof (await createPod(cluster.plane, first, "bank")) === "string" ? undefined : true,
      );
    });
    after(() => cluster?.close());

    async function makePool(name: string, spec: Json): Promise<void> {
      assert.ok(await new Client(cluster.admin, POOLS).create({ name }, poolObject(name, spec)));
    }

    async function claimsIn(namespace: string): Promise<number> {
      const items = await listItems(new Client(cluster.admin, CLAIMS), { namespace });
      return items.length;
    }

    it("are not passed by many pods that are created at once", async () => {
      const pods = Array.from({ length: AT_ONCE }, (_, n) =>
        pod(`p-${n}`, { annotations: { "berth.dev/pools": "few" } }),
      );
      const made = await Promise.all(pods.map((object) => createPod(cluster.plane, object, "shop")));
      const refused = made.filter((each) => typeof each === "string");
      const held = await claimsIn("shop");
      assert.ok(held <= LIMIT, `${held} claims at a limit of ${LIMIT}`);
      assert.equal(AT_ONCE - refused.length, held, "whoever was let through has his address");
      for (const words of refused) {
        assert.match(
          words,
          /namespace shop holds \d+ of the 2 addresses that pool "few" allows one namespace; release one, or ask for a higher limits\.perNamespace$/,
        );
      }
      await eventually("there is room up to the limit for those who try again", async () => {
        if ((await claimsIn("shop")) === LIMIT) return true;
        for (const object of pods) await createPod(cluster.plane, object, "shop");
        return undefined;
      });
      assert.match(
        String(
          await createPod(cluster.plane, pod("late", { annotations: { "berth.dev/pools": "few" } }), "shop"),
        ),
        /holds 2 of the 2 addresses that pool "few"/,
      );
    });

    it("let nothing stay of a StatefulSet that never had a pod, whatever it asks for", async () => {
      const annotations = { "berth.dev/pools": "wide", "berth.dev/when-deleted": "Retain" };
      const place = { namespace: "bank", name: "squat" };
      const selector = { matchLabels: { app: "squat" } };
      const container = { name: "main", image: "registry.example/app:1" };
      const template = {
        metadata: { labels: { app: "squat" }, annotations },
        spec: { containers: [container] },
      };
      const spec = { serviceName: "squat", replicas: REPLICAS, selector, template };
      const before = await claimsIn("bank");
      await make(cluster.admin, STATEFULSETS, place, { ...workload("StatefulSet", "squat"), spec });
      await eventually(
        "all are reserved",
        async () => ((await claimsIn("bank")) === before + REPLICAS ? true : undefined),
        120_000,
      );
      const path = itemPath(STATEFULSETS, place);
      const options = { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background" };
      assert.equal((await cluster.admin.call({ method: "DELETE", path, body: options })).status, 200);
      await eventually(
        "none is kept",
        async () => ((await claimsIn("bank")) === before ? true : undefined),
        120_000,
      );
      const items = await listItems(new Client(cluster.admin, RESERVATIONS));
      const held = items.filter((item) => {
        const spec = new Fields(item).at("spec");
        return spec.text("pool") === "wide" && spec.get("releasedAt") === undefined;
      });
      assert.equal(held.length, 0);
    });
  });
}
