// SPDX-License-Identifier: Apache-2.0
// Replicas of the webhook that go one by one under reviews that never stop. BERTH_LOAD_SECONDS makes it longer.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { POOLS } from "../../kube/api/resource.ts";
import { runsOf } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import type { ControlPlane } from "./plane.ts";
import { make } from "./replica-objects.ts";
import { type LoadResult, underLoad } from "./rolling-load.ts";
import { type RollingWebhook, startRollingPlane } from "./rolling-webhook.ts";

const SECONDS = Number(process.env["BERTH_LOAD_SECONDS"] ?? runsOf(40, 10));
const PER_SECOND = 100;
/** Between two replicas: whoever came back has its share of the connections again. */
const BETWEEN_MS = 1_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("replicas that go one by one", () => {
    let plane: ControlPlane;
    let webhook: RollingWebhook;
    before(async () => {
      ({ plane, webhook } = await startRollingPlane({ count: 3 }));
      const connection = plane.connect();
      await webhook.start();
      await make(connection, POOLS, { name: "db" }, { spec: { ranges: [{ cidr: "10.20.0.0/16" }] } });
    });
    after(async () => {
      await webhook?.close();
      await plane?.close();
    });

    /** Gives what the load saw, and how many replicas were replaced. */
    async function replaceUnderLoad(
      signal: NodeJS.Signals,
    ): Promise<LoadResult & { readonly replaced: number }> {
      let replaced = 0;
      const load = await underLoad(plane.connect(), PER_SECOND, async () => {
        for (
          const until = Date.now() + (SECONDS / 2) * 1_000;
          replaced < 3 || Date.now() < until;
          replaced++
        ) {
          const replica = webhook.all[replaced % webhook.all.length] ?? assert.fail();
          await webhook.replace(replica, signal);
          await pause(BETWEEN_MS);
        }
      });
      const { reviews, failed, seconds } = load;
      console.log(
        `${signal}: ${replaced} replicas replaced in ${seconds.toFixed(1)} s; ${reviews} reviews, ${failed.length} failed` +
          (failed.length === 0 ? "" : `, such as ${failed[0]}`),
      );
      return { ...load, replaced };
    }

    it("SIGTERM, as a Deployment ends its pods: no review fails", async () => {
      const { failed, replaced, reviews } = await replaceUnderLoad("SIGTERM");
      assert.deepEqual(failed.slice(0, 5), [], failed.length === 0 ? "" : webhook.logs());
      assert.ok(replaced >= 3 && reviews >= SECONDS / 2, `${replaced}, ${reviews}`);
    });

    it("SIGKILL: no review fails but those that were under way with the one that was killed", async () => {
      const { failed, replaced, reviews } = await replaceUnderLoad("SIGKILL");
      const others = failed.filter(
        (words) => !/failed calling webhook.*(EOF|reset|refused|broken)/.test(words),
      );
      assert.deepEqual(others.slice(0, 5), []);
      assert.ok(replaced >= 3 && failed.length < reviews / 10, `${failed.length} of ${reviews}`);
    });
  });
}
