// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { readObject, workloadState } from "../../allocator/manifest/kubernetes-object.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { claimRecord, granted } from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import { missingPod } from "./missing-pod.ts";

describe("a pod that is not there", () => {
  it("is looked for where pods are, and leads to the claim of its name", async () => {
    const database = openDatabase(":memory:");
    const store = openSqliteStore(database, {
      clock: createClock(),
      random: createRandom(),
      log: noopLogger,
    });
    const set = workloadState(granted(readObject(workload("StatefulSet", "pg", { replicas: 3 }))));
    const dated = { ...set, name: "dated", start: 2_026_112_900 };
    const sets = new Map([set, dated].map((one) => [one.name, one]));
    const world = { workload: async ({ name }: { name: string }) => sets.get(name) };
    try {
      const said = (place: "data" | "cluster", name: string) =>
        missingPod({ place, store, world, claims: async () => [] }, { namespace: "shop", name });
      assert.equal(
        await said("cluster", "web"),
        "there is no pod shop/web; see what there is with: kubectl get pods -A",
      );
      assert.equal(
        await said("data", "web"),
        "there is no pod shop/web; see what there is with: berthctl get pods -A",
      );
      await store.create("claim", claimRecord());
      assert.match(
        await said("cluster", "mysql-0"),
        /; there is a claim of that name: .* claim\/shop\/mysql-0$/,
      );
      const wanted =
        ", which StatefulSet shop/pg wants: why it has none yet, kubectl describe statefulset pg -n shop says;";
      assert.ok((await said("cluster", "pg-2")).startsWith(`there is no pod shop/pg-2${wanted} `));
      assert.match(await said("cluster", "dated-2026112902"), /, which StatefulSet shop\/dated wants: /);
      for (const [place, name] of [
        ["cluster", "pg-3"],
        ["cluster", "other-0"],
        ["cluster", "pg-02"],
        ["data", "pg-2"],
      ] as const)
        assert.match(await said(place, name), /^there is no pod shop\/[a-z0-9-]+; see what there is/, name);
      store.get = () => Promise.reject(new BerthError("STORE_READ_ONLY", "may not read claims"));
      assert.equal(
        await said("cluster", "mysql-0"),
        "there is no pod shop/mysql-0; see what there is with: kubectl get pods -A",
      );
    } finally {
      await store.close();
      database.close();
    }
  });
});
