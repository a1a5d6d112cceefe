// SPDX-License-Identifier: Apache-2.0
// Sets of hundreds at once, and who comes after them.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { startWorkloads } from "../../webhook/controllers/statefulset-controller.ts";
import { eventually } from "../support/eventually.ts";
import { poolRecord } from "../support/fixtures.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster } from "./controllers-cluster.ts";
import { seesWorkload } from "./seen-workloads.ts";

const IPS = "berth.dev/ips";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the workloads controller on a real API server", () => {
    let cluster: ControllersCluster;
    before(async () => {
      cluster = await ControllersCluster.open();
      await cluster.makePool(poolRecord("db", ["10.20.0.0/16", "fd00:20::/64"], { cooldown: "0s" }));
    });
    after(() => cluster?.close());
    afterEach(() => cluster.endAll());

    it("lets others have their turn beside sets of hundreds, as many as are worked on at a time", async () => {
      cluster.start(startWorkloads);
      const big = ["big-a", "big-b", "big-c", "big-d"];
      const begun = (name: string) =>
        cluster.replica.cache.claimsOfWorkload("StatefulSet", "shop", name).length;
      for (const name of big) {
        await cluster.applySet(name, { replicas: 200, annotations: { "berth.dev/pools": "db" } });
      }
      await eventually("all have begun", () => (big.every((name) => begun(name) > 0) ? true : undefined));
      await cluster.applySet("small", { replicas: 1, annotations: { [IPS]: "10.20.8.1" } });
      await eventually("the small one has its claim", () => cluster.replica.cache.claim("shop/small-0"));
      const counts = big.map(begun);
      await cluster.endAll();
      for (const name of big) await cluster.deleteSet(name);
      await eventually("they are gone", () =>
        big.some((name) => seesWorkload(cluster, name)) ? undefined : true,
      );
      assert.ok(
        counts.every((count) => count < 200),
        `${counts.join(", ")} of 200 each`,
      );
    });
  });
}
