// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { BerthError } from "../allocator/base/errors.ts";
import { noopLogger } from "../allocator/base/ports.ts";
import type { Connection } from "../kube/api/connection.ts";
import { createClock } from "../system/clock.ts";
import { createRandom } from "../system/random.ts";
import { writeCertificate } from "../test/api/serving-certificate.ts";
import { startWebhook } from "./replica.ts";
import { call, podReview, UID } from "./testing/api-server.ts";

/** No API server behind it. */
const unreachable: Connection = {
  call: () => Promise.reject(new BerthError("STORE_UNAVAILABLE", "the API server cannot be reached")),
  stream: () => Promise.reject(new BerthError("STORE_UNAVAILABLE", "the API server cannot be reached")),
  close() {},
};

describe("a replica of the webhook", () => {
  it("serves before it knows anything, says that it is not ready, decides nothing, and ends when it is told to", async () => {
    const certificates = mkdtempSync(join(tmpdir(), "berth-webhook-"));
    const ca = await writeCertificate(certificates);
    const webhook = await startWebhook({
      ...{ connection: unreachable, namespace: "berth-system", podName: "berth-0", certificates },
      ...{ host: "127.0.0.1", port: 0, departMs: 0 },
      ...{ clock: createClock(), random: createRandom(), log: noopLogger },
    });
    try {
      const { port } = webhook.address;
      const ready = await call({ port, ca, path: "/readyz", method: "GET" });
      assert.deepEqual([ready.status, ready.text], [503, "records are not loaded\n"]);
      assert.equal((await call({ port, ca, path: "/healthz", method: "GET" })).status, 200);
      const body = JSON.stringify(podReview());
      const { response } = JSON.parse((await call({ port, ca, path: "/mutate/pods", body })).text);
      assert.deepEqual(
        [response.uid, response.allowed, response.status.message],
        [UID, false, "berth cannot decide yet: records are not loaded; try again in a moment"],
      );
    } finally {
      await webhook.close();
      rmSync(certificates, { recursive: true });
    }
    assert.deepEqual(webhook.ready(), { ready: false, reason: "this replica is ending" });
  });
});
