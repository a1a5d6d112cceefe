// SPDX-License-Identifier: Apache-2.0
// Reviews that no API server sent, from somebody who reaches the webhook's port: what they can hold, and for how long.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ASSIGNED_ADDRESSES } from "../../allocator/manifest/annotations.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import {
  CLAIMS,
  collectionPath,
  DEPLOYMENTS,
  PODS,
  POOLS,
  RESERVATIONS,
  type Resource,
} from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { PENDING_LIMITS } from "../../webhook/admission/pending-claims.ts";
import { eventually } from "../support/eventually.ts";
import { deploymentPod, type Json, pod, poolObject } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { ForwardClock } from "./forward-clock.ts";
import type { ControlPlane } from "./plane.ts";
import { make, workloadSpec } from "./replica-objects.ts";
import { forgedWords, type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

const MOST = PENDING_LIMITS.perNamespace;
const AT_ONCE = 32;
const ENTRIES = ["10.70.200.1", "10.70.200.2", "10.70.200.3"];
/** Between two claims that go: a pass comes every 10 s, and a busy machine takes its time for one. */
const GOES_ON_MS = 120_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("forged reviews", () => {
    const clock = new ForwardClock();
    let plane: ControlPlane;
    let admin: Connection;
    let running: RunningWebhook;

    before(async () => {
      plane = await openControlPlane();
      admin = plane.connect();
      await makeNamespaces(admin, ["shop", "bank"]);
      running = await runWebhook(plane, { clock });
      const spec = { ranges: [{ cidr: "10.70.0.0/16" }], reserved: ENTRIES, cooldown: "0s" };
      const pool = poolObject("web", spec);
      assert.ok(await new Client(admin, POOLS).create({ name: "web" }, pool));
      assert.equal(await made(pod("first", { annotations: ASKS })), "");
    });
    after(async () => {
      await running?.close();
      await plane?.close();
    });

    const ASKS = { "berth.dev/pools": "web" };

    /** Why the API server does not make the pod; "" when it does. */
    async function made(object: Json): Promise<string> {
      const { namespace } = object["metadata"] as { readonly namespace: string };
      const answer = await admin.call({
        method: "POST",
        path: collectionPath(PODS, namespace),
        body: object,
      });
      return answer.status === 201 ? "" : statusOf(answer.body, answer.status).message;
    }

    /** Sends a review straight to the webhook: its words, or "" for a pod that was given addresses. */
    async function forged(
      n: number,
      object: Json = pod(`ghost-${n}`, { annotations: ASKS }),
    ): Promise<string> {
      return await forgedWords(running, object, `review-${n}`);
    }

    async function count(of: Resource): Promise<number> {
      let all = 0;
      for await (const { items } of new Client(admin, of).pages({}, 500)) all += items.length;
      return all;
    }

    it("hold no more addresses of a namespace than the limit says, and are told so", async () => {
      const answers = new Map<string, number>(); // words -> how often
      let next = 0;
      const work = async () => {
        while (next < MOST + AT_ONCE) {
          const words = await forged(next++);
          answers.set(words, (answers.get(words) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      assert.deepEqual([...answers].sort(), [
        ["", MOST],
        [
          `namespace shop has ${MOST} claims and addresses that are held for pods which were admitted and have not come, and no more is taken until they come, or what is held for them is free again after 120 s; try again`,
          AT_ONCE,
        ],
      ]);
      assert.equal(await count(RESERVATIONS), MOST + 1);
    });

    it("keep no other namespace from its addresses, and no pod from those that it has", async () => {
      assert.equal(await made(pod("clerk", { namespace: "bank", annotations: ASKS })), "");
      assert.match(
        await made(pod("late", { annotations: ASKS })),
        /namespace shop has 500 claims and addresses that are held/,
      );
      const path = `${collectionPath(PODS, "shop")}/first`;
      const { status } = await admin.call({ method: "DELETE", path, query: { gracePeriodSeconds: "0" } });
      assert.equal(status, 200);
      assert.equal(await made(pod("first", { annotations: ASKS })), "");
    });

    it("hold them for 120 s", async () => {
      clock.forward(121_000);
      // however long it takes to let go of so many: as long as it goes on
      for (let left = await count(CLAIMS); left > 2; ) {
        const fewer = async () => {
          // a busy API server may hang up on a long list
          const now = await count(CLAIMS).catch(() => left);
          return now < left ? now : undefined;
        };
        left = await eventually(`one of ${left} claims goes`, fewer, GOES_ON_MS);
      }
      assert.equal(await count(CLAIMS), 2);
      assert.equal(await made(pod("late", { annotations: ASKS })), "");
    });

    it("hold the free entries of a list for 120 s, however often they come, and none that a pod has", async () => {
      const annotations = { "berth.dev/ips": ENTRIES.join(";") };
      const place = { namespace: "bank", name: "front" };
      await make(admin, DEPLOYMENTS, place, { spec: workloadSpec("front", { replicas: 2, annotations }) });
      const owned = deploymentPod("front", { namespace: "bank", annotations });
      assert.equal(await made(owned), "");
      const answers = [];
      for (const n of [1, 2, 3, 4]) answers.push(await forged(n, owned));
      const [first, second, ...others] = answers;
      assert.deepEqual([first, second], ["", ""], "as long as there is a free one");
      for (const words of others) assert.match(words, /^all 3 entries of the list are in use: /);
      assert.match(await made(owned), / that was admitted less than 120 s ago/);
      // no replica has met the first pod yet: its token alone says that it is there
      clock.forward(60_000);
      assert.notEqual(await forged(5, owned), "", "to ask again makes none last");
      clock.forward(61_000);
      await eventually("the Deployment's next pod has one", async () =>
        (await made(owned)) === "" ? true : undefined,
      );
      const reported = [];
      for await (const { items } of new Client(admin, PODS).pages({ namespace: "bank" }, 500))
        reported.push(
          ...items.map(({ metadata: { annotations: its = {} } }) => its[ASSIGNED_ADDRESSES] ?? ""),
        );
      const own = reported.filter((address) => ENTRIES.includes(address));
      assert.deepEqual([own.length, new Set(own).size], [2, 2], "each pod has an entry of its own");
    });
  });
}
