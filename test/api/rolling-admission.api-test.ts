// SPDX-License-Identifier: Apache-2.0
// Pods that are made one after another while all replicas of the webhook are restarted.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "../../kube/api/connection.ts";
import { collectionPath, PODS, POOLS } from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { annotationsOf, type Json, pod } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { POOL_OBJECTS } from "./manifests.ts";
import type { ControlPlane } from "./plane.ts";
import { startReplicas } from "./replicas.ts";
import { openControlPlane } from "./shared-plane.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the webhook in a cluster", () => {
    let plane: ControlPlane;
    let api: Connection;
    before(async () => {
      plane = await openControlPlane();
      api = plane.connect();
      await installDefinitions(api);
      await makeNamespaces(api, ["berth-system", "shop"]);
    });
    after(() => plane?.close());

    /** The addresses of a pod that was made, or why it was not. */
    async function sent(object: Json): Promise<string> {
      const path = collectionPath(PODS, "shop");
      const { status, body } = await api.call({ method: "POST", path, body: object });
      if (status !== 201) return statusOf(body, status).message;
      return annotationsOf(body as Json)["berth.dev/addresses"] ?? "";
    }

    describe("as processes", () => {
      before(async () => {
        for (const body of POOL_OBJECTS) {
          const { status } = await api.call({ method: "POST", path: collectionPath(POOLS), body });
          assert.equal(status, 201);
        }
      });

      it("lose no pod while all replicas are restarted one after the other", async () => {
        const replicas = await startReplicas(plane, { count: 2, env: { BERTH_DEPART: "500ms" } });
        try {
          let made = 0;
          const stop = new AbortController();
          const making = (async () => {
            for (; !stop.signal.aborted; made++) {
              const object = pod(`rolling-${made}`, { annotations: { "berth.dev/pools": "db" } });
              assert.match(await sent(object), /^10\.20\.0\.\d+,fd00:20::/);
              await pause(20);
            }
          })();
          const restarting = (async () => {
            for (const replica of replicas.all) await replicas.restart(replica);
          })().finally(() => stop.abort());
          const failed = (await Promise.allSettled([making, restarting])).find(
            (one) => one.status === "rejected",
          );
          assert.equal(failed?.reason, undefined);
          assert.ok(made > 10, `${made} pods`);
        } finally {
          await replicas.close();
        }
      });
    });
  });
}
