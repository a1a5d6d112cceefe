// SPDX-License-Identifier: Apache-2.0
// Claims of different workloads that have one name, where a controller makes them.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { DEPLOYMENTS, type Resource } from "../../kube/api/resource.ts";
import { startWorkloads } from "../../webhook/controllers/statefulset-controller.ts";
import { eventually } from "../support/eventually.ts";
import { poolRecord } from "../support/fixtures.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster, NAMESPACE } from "./controllers-cluster.ts";
import { installKruise } from "./replica-kruise.ts";
import { makeDeployment } from "./replica-objects.ts";

const IPS = "berth.dev/ips";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("claims of one name on a real API server", () => {
    let cluster: ControllersCluster;
    let kruiseSets: Resource;
    before(async () => {
      cluster = await ControllersCluster.open(async (connection) => {
        [kruiseSets] = await installKruise(connection, "statefulsets");
      });
      await cluster.makePool(poolRecord("db", "10.20.0.0/16", { cooldown: "0s" }));
    });
    after(() => cluster?.close());
    afterEach(() => cluster.endAll());

    const noteOn = (name: string) => cluster.note(name)?.note ?? "";

    it("a StatefulSet leaves a Deployment the names of its slots, and has them when it is gone", async () => {
      const place = { namespace: NAMESPACE, name: "web" };
      await makeDeployment(cluster.connection, place, { annotations: { [IPS]: "10.20.1.1;10.20.1.2" } });
      cluster.start(startWorkloads, { context: { ...cluster.context, clock: cluster.clock } });
      await cluster.applySet("web-slot", { replicas: 3, annotations: { [IPS]: "10.20.1.5-10.20.1.7" } });
      await cluster.holds("web-slot-", { "web-slot-2": "10.20.1.7" });
      await cluster.tells("web-slot", ["Warning ClaimBusy"]);
      assert.match(
        noteOn("web-slot"),
        /^2 pods cannot have their addresses now; the first, pod web-slot-0: the name of ordinal 0 is taken by claim shop\/web-slot-0 of Deployment web, slot 0: rename or delete /,
      );
      await cluster.delete(DEPLOYMENTS, "web");
      await eventually("it is told to look again", async () => {
        cluster.clock.skip(60_000);
        return Object.keys(await cluster.holdings("web-slot-")).length === 3 ? true : undefined;
      });
      await cluster.sound();
    });

    it("an ordinal stays with the StatefulSet that has it, beside one of another group under its name", async () => {
      cluster.start(startWorkloads);
      const annotations = { [IPS]: "10.20.2.1;10.20.2.2", "berth.dev/when-deleted": "Retain" };
      await cluster.applySet("both", { replicas: 1, annotations });
      await cluster.holds("both-", { "both-0": "10.20.2.1" });
      const first = (await cluster.claim("both-0"))?.record;
      assert.equal(first?.identity.apiVersion, "apps/v1");

      await cluster.applySet(
        "both",
        { replicas: 2, annotations: { [IPS]: "10.20.2.1;10.20.2.3" } },
        kruiseSets,
      );
      await cluster.holds("both-", { "both-0": "10.20.2.1", "both-1": "10.20.2.3" });
      const now = (await cluster.claim("both-0"))?.record;
      assert.deepEqual([now?.identity, now?.retention], [first?.identity, first?.retention]);
      assert.equal((await cluster.claim("both-1"))?.record.identity.apiVersion, "apps.kruise.io/v1beta1");
      await cluster.sound();
    });
  });
}
