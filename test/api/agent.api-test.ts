// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isRefusal } from "../../allocator/base/errors.ts";
import { eventually } from "../support/eventually.ts";
import { sandbox } from "./agent-cluster.ts";
import { AgentSuite } from "./agent-suite.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { requestCounts } from "./request-counts.ts";
import { openControlPlane } from "./shared-plane.ts";

const CLAIM_OR_POD = /^(GET|PATCH|POST|PUT|DELETE) .*\/(ipclaims|pods|ipreservations)\//;
const RANGES = { subnet: "10.9.0.0/24" };
/** The node of those that neither end its agent nor count its calls. */
const KEPT = "kept";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  const suite = new AgentSuite(openControlPlane);

  describe("the agent of a cluster's node", () => {
    it("answers an ADD from memory, and says afterwards who has the claim", async () => {
      const node = await suite.startNode("node-a", suite.gate.kubeConfig());
      const pod = await suite.cluster.boundPod("memory-0", "node-a");
      const held = suite.gate.hold((method, path) => CLAIM_OR_POD.test(`${method} ${path.split("?")[0]}`));
      assert.deepEqual(await node.runtime.add(sandbox(pod, "c1")), [pod.cidr]);
      await held.arrived;
      await held.release();
      await suite.cluster.untilStatus("memory-0", "Attached c1");
      const of = await requestCounts(suite.plane.connect());
      assert.deepEqual(
        suite.gate.seen.filter((seen) => CLAIM_OR_POD.test(seen)),
        ["PATCH /apis/berth.dev/v1alpha1/namespaces/shop/ipclaims/memory-0/status"],
      );
      await node.runtime.add(sandbox(pod, "c1"));
      await pause(500);
      const later = await requestCounts(suite.plane.connect());
      const calls = (counts: typeof of) =>
        ["GET", "POST", "PUT", "PATCH", "DELETE"].flatMap((verb) =>
          ["ipclaims", "ipreservations", "pods"].map((resource) => counts({ resource, verb })),
        );
      assert.deepEqual(calls(later), calls(of));
    });

    it("waits for the binding", async () => {
      const node = await suite.keptNode(KEPT);
      const cidr = await suite.cluster.claim("late-0");
      const pod = await suite.cluster.pod("late-0", KEPT, { "berth.dev/claim": "late-0" });
      const adding = node.runtime.add(sandbox(pod, "late"));
      await pause(300);
      await suite.cluster.bind(pod, KEPT);
      assert.deepEqual(await adding, [cidr]);
    });

    it("waits for it although the agent was told to end, and for the next agent", async () => {
      const node = await suite.startNode("node-s");
      const cidr = await suite.cluster.claim("last-0");
      const last = await suite.cluster.pod("last-0", "node-s", { "berth.dev/claim": "last-0" });
      const adding = node.runtime.add(sandbox(last, "c1"));
      await pause(300);
      const ended = node.stop();
      await pause(300);
      await suite.cluster.bind(last, "node-s");
      assert.deepEqual(await adding, [cidr]);
      await ended;
      const first = await suite.cluster.boundPod("first-0", "node-s");
      const waiting = node.runtime.add(sandbox(first, "c2"));
      await node.start();
      assert.deepEqual(await waiting, [first.cidr]);
    });

    it("does not wait for ever, nor for a pod that was never admitted", async () => {
      const node = await suite.keptNode(KEPT);
      await suite.cluster.claim("never-0");
      const never = await suite.cluster.pod("never-0", KEPT, { "berth.dev/claim": "never-0" });
      const stray = await suite.cluster.pod("stray-0", KEPT, { "berth.dev/ips": "10.20.0.9" });
      const unknown = { name: "unknown-0", uid: "u-1" };
      assert.deepEqual(
        await Promise.all(
          [never, stray, unknown].map((pod) =>
            node.runtime.refused("ADD", sandbox(pod, pod.name, { ipam: RANGES })),
          ),
        ),
        [
          "11 claim shop/never-0 is not bound to pod shop/never-0 on node kept in 5 s; the events of the pod say why, unless no Berth webhook runs; try again",
          "116 pod shop/stray-0 asks for a fixed address and has no claim: its claim was given back, or it did not pass the Berth webhook; delete it and create it again",
          "11 pod shop/unknown-0 is not known on node kept: the API server has not told of it in 5 s; try again",
        ],
      );
    });

    it("leaves a pod that asks for nothing to the ranges of the configuration, at once", async () => {
      const node = await suite.keptNode(KEPT);
      const pod = await suite.cluster.pod("plain-0", KEPT);
      // who waits for a binding takes 5 s each time, and who does not no longer than the machine
      let tries = 0;
      await eventually("it is served before it could have waited for a binding", async () => {
        const began = performance.now();
        const given = await node.runtime.add(sandbox(pod, `plain-${++tries}`, { ipam: RANGES }));
        assert.deepEqual(given, [`10.9.0.${1 + tries}/24`]);
        return performance.now() - began < 4_900 || undefined;
      });
    });

    it("does not let a claim go between two sandboxes of a pod", async () => {
      const node = await suite.keptNode(KEPT);
      const pod = await suite.cluster.boundPod("again-0", KEPT);
      await node.runtime.add(sandbox(pod, "s1"));
      await suite.cluster.untilStatus("again-0", "Attached s1");
      await node.runtime.del(sandbox(pod, "s1"));
      await pause(700);
      assert.equal(await suite.cluster.status("again-0"), "Attached s1");
      assert.deepEqual(await node.runtime.add(sandbox(pod, "s2")), [pod.cidr]);
      await suite.cluster.untilStatus("again-0", "Attached s2");
    });

    it("lets it go once pod and sandbox are gone, and another node may have it", async () => {
      const node = await suite.keptNode(KEPT);
      const pod = await suite.cluster.boundPod("moves-0", KEPT);
      await node.runtime.add(sandbox(pod, "moves"));
      await suite.cluster.forget(pod);
      const next = await suite.cluster.pod("moves-0", "node-g");
      await pause(700);
      const refused = await suite.cluster.bind(next, "node-g");
      assert.ok(isRefusal(refused) && refused.code === "CLAIM_BUSY", "its sandbox lives");
      await node.runtime.del(sandbox(pod, "moves"));
      await suite.cluster.untilStatus("moves-0", "Detached moves");
      assert.ok(!isRefusal(await suite.cluster.bind(next, "node-g")));
      const there = await suite.startNode("node-g");
      assert.deepEqual(await there.runtime.add(sandbox(next, "c2")), [pod.cidr]);
      await suite.cluster.untilStatus("moves-0", "Attached c2");
      await node.runtime.del(sandbox(pod, "moves"));
      await pause(500);
      assert.equal(await suite.cluster.status("moves-0"), "Attached c2");
    });

    it("lets claims go of pods that ended, and of pods that never had a sandbox", async () => {
      const node = await suite.keptNode(KEPT);
      const done = await suite.cluster.boundPod("done-0", KEPT);
      await node.runtime.add(sandbox(done, "done"));
      await suite.cluster.finish(done, "Succeeded");
      await node.runtime.del(sandbox(done, "done"));
      const idle = await suite.cluster.boundPod("idle-0", KEPT);
      await suite.cluster.forget(idle);
      await suite.cluster.untilStatus("done-0", "Detached done");
      await suite.cluster.untilStatus("idle-0", "Detached");
    });

    it("hands the claim on to the next pod of its name, once the network namespace of the first is gone", async () => {
      const node = await suite.keptNode(KEPT);
      const pod = await suite.cluster.boundPod("next-0", KEPT);
      const netns = join(node.folder, "netns-next");
      await writeFile(netns, "");
      await node.runtime.add(sandbox(pod, "next-a", { netns }));
      await rm(netns);
      await suite.cluster.forget(pod);
      const next = await suite.cluster.pod("next-0", KEPT, { "berth.dev/claim": "next-0" });
      assert.ok(!isRefusal(await suite.cluster.bind(next, KEPT)));
      assert.deepEqual(await node.runtime.add(sandbox(next, "next-b")), [pod.cidr]);
      await node.runtime.del(sandbox(pod, "next-a", { netns }));
      await suite.cluster.untilStatus("next-0", "Attached next-b");
      assert.match(
        await node.runtime.refused("ADD", sandbox(pod, "next-c")),
        /^11 the pod shop\/next-0 that this sandbox is for is deleted, and another one has its name/,
      );
    });
  });
}
