// SPDX-License-Identifier: Apache-2.0
// Certificates that live for seconds, under reviews that never stop. BERTH_LOAD_SECONDS makes it longer.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { POOLS } from "../../kube/api/resource.ts";
import { runsOf } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import type { ControlPlane } from "./plane.ts";
import { make } from "./replica-objects.ts";
import { shakeHands } from "./rolling-handshakes.ts";
import { underLoad } from "./rolling-load.ts";
import { type RollingWebhook, startRollingPlane } from "./rolling-webhook.ts";

const SECONDS = Number(process.env["BERTH_LOAD_SECONDS"] ?? runsOf(40, 20));
const PER_SECOND = 100;
/** Old authorities retire within the run; and a machine that is busy for 20 s is no certificate that has expired. */
const LIVES = { BERTH_LEAF_LIFE: "30s", BERTH_AUTHORITY_LIFE: "90s" };
/** On demand: an authority, and a certificate of it. */
const EVERY_MS = 10_000;
/** Of the 3 s that API servers are given with such lives. */
const LAG_MS = 2_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("certificates that are rotated", () => {
    let plane: ControlPlane;
    let webhook: RollingWebhook;
    before(async () => {
      ({ plane, webhook } = await startRollingPlane({ count: 3, env: LIVES }));
      const connection = plane.connect();
      await webhook.start();
      await make(connection, POOLS, { name: "db" }, { spec: { ranges: [{ cidr: "10.20.0.0/16" }] } });
    });
    after(async () => {
      await webhook?.close();
      await plane?.close();
    });

    it("authority and certificate every 10 s, under 100 reviews a second: none fails", async () => {
      const stop = new AbortController();
      const shaking = shakeHands(webhook, LAG_MS, stop.signal);
      const load = await underLoad(plane.connect(), PER_SECOND, async () => {
        for (const until = Date.now() + SECONDS * 1_000; Date.now() < until; ) {
          await webhook.rotate("authority");
          await pause(Math.min(EVERY_MS, Math.max(until - Date.now(), 0)));
        }
      });
      stop.abort();
      const hands = await shaking;
      const { reviews, failed } = load;
      console.log(
        `${reviews} reviews in ${load.seconds.toFixed(1)} s, ${failed.length} failed; ${hands.count} handshakes, ` +
          `${hands.failed.length} failed; ${hands.leaves} certificates, ${hands.bundles} bundles`,
      );
      const logs = failed.length + hands.failed.length === 0 ? "" : webhook.logs();
      assert.deepEqual([failed.slice(0, 5), hands.failed.slice(0, 5)], [[], []], logs);
      assert.ok(reviews >= SECONDS, `${reviews} reviews were sent`);
      assert.ok(hands.bundles >= Math.floor(SECONDS / 10), `${hands.bundles} bundles`);
      assert.ok(hands.leaves >= Math.floor(SECONDS / 10), `${hands.leaves} certificates`);
    });
  });
}
