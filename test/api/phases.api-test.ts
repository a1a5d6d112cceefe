// SPDX-License-Identifier: Apache-2.0
// What the column PHASE of `kubectl get ipclaim` shows, and what that costs.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { requestFor } from "../../allocator/demand/build-request.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import type { ClaimStatus } from "../../allocator/model/claim.ts";
import { CLAIMS } from "../../kube/api/resource.ts";
import { startClaims } from "../../webhook/controllers/claims/controller.ts";
import { startPhases } from "../../webhook/controllers/phase-controller.ts";
import { eventually } from "../support/eventually.ts";
import { applicantOf, attachmentOf, granted, poolRecord } from "../support/fixtures.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster, NAMESPACE } from "./controllers-cluster.ts";
import { requestCounts } from "./request-counts.ts";

const FREE = { fenced: false, holdExpired: true };

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the phase of a claim in kubectl", () => {
    let cluster: ControllersCluster;
    before(async () => {
      cluster = await ControllersCluster.open();
      await cluster.store.create("pool", poolRecord("db", ["10.20.0.0/16"]));
      await eventually("the pool", () => cluster.replica.cache.pool("db"));
    });
    after(() => cluster?.close());
    afterEach(async () => {
      cluster.clock.start();
      await cluster.endAll();
    });

    const start = () => cluster.start(startPhases, { context: { ...cluster.context, clock: cluster.clock } });

    /** A claim as admission makes it for a pod of that name. */
    const makeClaim = async (name: string) => {
      const identity = { kind: "Pod", apiVersion: "v1", name };
      const podIdentity = { kind: "named", claim: name, identity } as const;
      const request = { pools: ["db"] };
      const allocation = granted(requestFor(applicantOf({ podIdentity, request, now: Date.now() })));
      granted(await reserve(cluster.context, allocation, "pod"));
      await cluster.caughtUp();
    };

    const bindTo = async (name: string, node: string) => {
      const target = { name, uid: `uid-of-${name}`, node, token: "" };
      const bound = await bind(cluster.context, `${NAMESPACE}/${name}`, target, async () => FREE);
      assert.ok(!isRefusal(bound));
      await cluster.caughtUp();
    };

    const report = async (name: string, status: ClaimStatus) => {
      const seen = await cluster.claim(name);
      assert.ok(seen);
      assert.equal((await cluster.store.report(seen, status)).kind, "replaced");
      await cluster.caughtUp();
    };

    /** The column PHASE of every claim of that name. */
    const shown = async (name: string) => {
      const { stdout, stderr } = await cluster.plane.kubectl(["get", "ipclaim", "-A"]);
      assert.equal(stderr, "");
      const [head = "", ...rows] = stdout.trimEnd().split("\n");
      const [from, to] = [head.indexOf("PHASE"), head.indexOf("ADDRESSES")];
      const row = rows.find((line) => line.split(/ +/)[1] === name);
      return row?.slice(from, to).trim();
    };

    const shows = async (name: string, phase: string) => {
      let last: string | undefined;
      try {
        await eventually(`${name} is ${phase}`, async () => {
          cluster.clock.skip(1_000);
          last = await shown(name);
          return last === phase ? true : undefined;
        });
      } catch {
        assert.equal(last, phase);
      }
    };

    const statusWrites = async () => {
      const counts = await requestCounts(cluster.connection);
      return counts({ resource: "ipclaims", verb: "PATCH", subresource: "status" });
    };

    it("is empty at first, and follows the claim when nobody else reports it", async () => {
      start();
      await makeClaim("fresh");
      assert.equal(await shown("fresh"), "");
      await shows("fresh", "Reserved");
      await bindTo("fresh", "node-a");
      await shows("fresh", "Bound");
      await report("fresh", { phase: "Detached", attachment: attachmentOf("fresh", { detached: true }) });
      const seen = await cluster.claim("fresh");
      assert.ok(seen);
      const { binding: _, ...rest } = seen.record;
      const retained = { since: Date.now(), because: "deleted" } as const;
      await cluster.store.replace("claim", seen, { ...rest, retained });
      await shows("fresh", "Retained");
      const { status } = (await cluster.claim("fresh"))?.record ?? seen.record;
      assert.equal(status.attachment?.podUID, "uid-of-fresh");
      await cluster.sound();
    });

    it("costs nothing for a pod whose agent reports it within 5 s", async () => {
      start();
      cluster.clock.stop(); // a slow machine needs longer for the steps
      await makeClaim("quick");
      const before = await statusWrites();
      cluster.clock.skip(4_000);
      await bindTo("quick", "node-a");
      cluster.clock.skip(4_000);
      await report("quick", { phase: "Attached", attachment: attachmentOf("quick") });
      cluster.clock.start();
      cluster.clock.skip(60_000);
      await makeClaim("marker"); // is written after whatever else was due
      await shows("marker", "Reserved");
      assert.equal(await shown("quick"), "Attached");
      assert.equal((await statusWrites()) - before, 2); // the agent's, and that of the marker
    });

    it("is agreed upon by the controller of claims that people make", async () => {
      start();
      cluster.start(startClaims);
      await cluster.applyClaim("licence", { pools: ["db"] });
      await shows("licence", "Reserved");
      await cluster.condition(CLAIMS, "licence", "Ready=True Reserved");
      await bindTo("licence", "node-a");
      await shows("licence", "Bound");
      await cluster.caughtUp();
      const before = await statusWrites();
      await makeClaim("marker-2");
      await shows("marker-2", "Reserved");
      assert.equal(await shown("licence"), "Bound");
      assert.equal((await statusWrites()) - before, 1);
    });

    it("of claims from before is written by whoever comes to lead, once", async () => {
      const names = ["old-0", "old-1", "old-2"];
      for (const name of names) await makeClaim(name);
      const before = await statusWrites();
      start();
      for (const name of names) await shows(name, "Reserved");
      await cluster.caughtUp();
      cluster.clock.skip(60_000);
      await cluster.endAll();
      start();
      cluster.clock.skip(60_000);
      await makeClaim("after-0");
      await shows("after-0", "Reserved");
      assert.equal((await statusWrites()) - before, 4);
    });
  });
}
