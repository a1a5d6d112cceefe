// SPDX-License-Identifier: Apache-2.0
// Claims that a real API server refuses: what their pods are told, and what is left of them.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, itemPath, NAMESPACES, POOLS, RESERVATIONS, type Resource } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { type Json, pod, poolObject } from "../support/objects.ts";
import { runsOf } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { QUOTAS } from "./cluster-resources.ts";
import { makeNamespaces } from "./crds.ts";
import { listItems } from "./list-items.ts";
import type { ControlPlane } from "./plane.ts";
import { requestCounts } from "./request-counts.ts";
import { createPod, forgedWords, type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

const ASKS = { annotations: { "berth.dev/pools": "small" } };
/** Addresses of pool `small`: a /27 without its network, its broadcast address and its gateway. */
const SIZE = 29;
/** More than there are addresses. */
const REVIEWS = runsOf(300, 40);
const AT_ONCE = 20;
const COUNTED = "count/ipclaims.berth.dev";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("claims that the API server refuses", () => {
    let plane: ControlPlane;
    let admin: Connection;
    let running: RunningWebhook;

    before(async () => {
      plane = await openControlPlane();
      admin = plane.connect();
      running = await runWebhook(plane);
      await makeNamespaces(admin, ["shop", "bank", "full", "going"]);
      // one that is given back is not free again before the test is over
      const spec = { ranges: [{ cidr: "10.70.0.0/27", gateway: "10.70.0.1" }], cooldown: "1h" };
      assert.ok(await new Client(admin, POOLS).create({ name: "small" }, poolObject("small", spec)));
      await eventually("the webhook knows the pool", async () =>
        (await made(pod("first", ASKS))) === "" ? true : undefined,
      );
    });
    after(async () => {
      await running?.close();
      await plane?.close();
    });

    /** Why the API server does not make the pod; "" when it does. */
    async function made(object: Json, namespace = "shop"): Promise<string> {
      const got = await createPod(plane, object, namespace);
      return typeof got === "string" ? got : "";
    }

    /** What the webhook answers to a review that no API server sent: "" for yes. */
    async function forged(name: string, namespace: string): Promise<string> {
      return await forgedWords(running, { ...pod(name, ASKS), metadata: { name, namespace, ...ASKS } });
    }

    async function count(resource: Resource): Promise<number> {
      const items = await listItems(new Client(admin, resource));
      return items.length;
    }

    async function writes(): Promise<number> {
      const of = await requestCounts(admin);
      return of({ resource: "ipreservations", verb: "POST" });
    }

    /** A quota as its controller sets it up, which does not run here; the API server keeps count of it. */
    async function quota(namespace: string, hard: number): Promise<void> {
      const client = new Client(admin, QUOTAS);
      const place = { namespace, name: "claims" };
      assert.ok(await client.create(place, { spec: { hard: { [COUNTED]: String(hard) } } }));
      const status = { hard: { [COUNTED]: String(hard) }, used: { [COUNTED]: "0" } };
      assert.ok(await client.patch(place, { type: "merge", body: { status } }, "status"));
    }

    it("hold nothing for a namespace that does not exist", async () => {
      const before = await count(RESERVATIONS);
      const answers = new Set<string>();
      for (let n = 0; n < REVIEWS; n += AT_ONCE) {
        const namespaces = Array.from({ length: AT_ONCE }, (_, i) => `nowhere-${n + i}`);
        const said = await Promise.all(namespaces.map((namespace) => forged("a", namespace)));
        for (const words of said) answers.add(words.replace(/nowhere-\d+/, "N"));
      }
      assert.deepEqual([...answers], ["namespace N does not exist; create it first"]);
      assert.equal(await count(RESERVATIONS), before);
    });

    it("hold nothing for a namespace that is being deleted, by whatever is known of it", async () => {
      assert.equal(await made(pod("b", ASKS), "going"), "");
      const [reserved, claims] = [await count(RESERVATIONS), await count(CLAIMS)];
      const path = itemPath(NAMESPACES, { name: "going" });
      assert.equal((await admin.call({ method: "DELETE", path })).status, 200);
      // from its cache, that of a moment ago, or from the API server's refusal of the claim
      const answers = await Promise.all(Array.from({ length: 32 }, (_, n) => forged(`c-${n}`, "going")));
      for (const words of answers)
        assert.match(words, /namespace going (because it )?is being (deleted|terminated)/);
      assert.equal(
        await forged("d", "going"),
        "namespace going is being deleted; create the pod in another one",
      );
      assert.deepEqual([await count(RESERVATIONS), await count(CLAIMS)], [reserved, claims]);
    });

    it("leave the pool to others when a tenant is over his quota, however often he tries", async () => {
      await quota("full", 2);
      assert.equal(await made(pod("a-0", ASKS), "full"), "");
      assert.equal(await made(pod("a-1", ASKS), "full"), "");
      const before = await count(RESERVATIONS);
      const first = await made(pod("a-2", ASKS), "full");
      assert.match(
        first,
        /ipclaims\.berth\.dev "a-2" is forbidden: exceeded quota: claims, requested: count\/ipclaims\.berth\.dev=1, used: count\/ipclaims\.berth\.dev=2, limited: count\/ipclaims\.berth\.dev=2; release claims of the namespace that nobody needs, or raise the quota$/,
      );
      assert.doesNotMatch(first, /internal error/);
      const wrote = await writes();
      for (let n = 0; n < REVIEWS; n += AT_ONCE) {
        const names = Array.from({ length: AT_ONCE }, (_, i) => `b-${n + i}`);
        for (const words of await Promise.all(names.map((name) => made(pod(name, ASKS), "full")))) {
          assert.match(words, /exceeded quota/);
        }
      }
      assert.equal(await writes(), wrote, "no address is taken to be given back");
      assert.equal(await count(RESERVATIONS), before);
      assert.equal(await made(pod("neighbour", ASKS), "bank"), "");
    });

    it("let the tenant have what he may once his quota is raised", async () => {
      const status = { hard: { [COUNTED]: "3" } };
      const place = { namespace: "full", name: "claims" };
      await new Client(admin, QUOTAS).patch(place, { type: "merge", body: { spec: status } });
      await new Client(admin, QUOTAS).patch(place, { type: "merge", body: { status } }, "status");
      await eventually("a pod under the new quota", async () =>
        (await made(pod("a-2", ASKS), "full")) === "" ? true : undefined,
      );
      assert.match(await made(pod("a-3", ASKS), "full"), /exceeded quota/);
      assert.ok((await count(RESERVATIONS)) < SIZE);
    });
  });
}
