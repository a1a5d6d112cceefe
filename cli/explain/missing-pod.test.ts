// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { claimRecord } from "../../test/support/fixtures.ts";
import { missingPod } from "./missing-pod.ts";

describe("a pod that is not there", () => {
  it("is looked for where pods are, and leads to the claim of its name", async () => {
    const database = openDatabase(":memory:");
    const store = openSqliteStore(database, {
      clock: createClock(),
      random: createRandom(),
      log: noopLogger,
    });
    try {
      const said = (place: "data" | "cluster", name: string) =>
        missingPod({ place, store, claims: async () => [] }, { namespace: "shop", name });
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
