// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { sandbox } from "./agent-cluster.ts";
import { AgentSuite } from "./agent-suite.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { openControlPlane } from "./shared-plane.ts";

const STATUS_WRITES = (method: string, path: string) => method === "PATCH" && path.includes("/status");

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  const suite = new AgentSuite(openControlPlane);

  describe("the status of a claim, written late", () => {
    it("an ADD that comes while a claim is let go asks the API server, and takes it back", async () => {
      const node = await suite.startNode("node-j", suite.gate.kubeConfig());
      const pod = await suite.cluster.boundPod("race-0", "node-j");
      const held = suite.gate.hold(STATUS_WRITES, 1);
      await suite.cluster.forget(pod);
      await held.arrived; // no sandbox, no pod: it is about to say so
      assert.deepEqual(await node.runtime.add(sandbox(pod, "c1")), [pod.cidr]);
      assert.equal(await suite.cluster.status("race-0"), "Attached c1");
      assert.deepEqual(await held.release(), [409], "the late one comes to nothing");
      assert.equal(await suite.cluster.status("race-0"), "Attached c1");
    });

    it("is refused when the claim was let go and has moved on", async () => {
      const node = await suite.startNode("node-k", suite.gate.kubeConfig());
      const pod = await suite.cluster.boundPod("gone-0", "node-k");
      await suite.cluster.forget(pod);
      await suite.cluster.untilStatus("gone-0", "Detached");
      const next = await suite.cluster.pod("gone-0", "node-l");
      assert.ok(!isRefusal(await suite.cluster.bind(next, "node-l")));
      assert.match(
        await node.runtime.refused("ADD", sandbox(pod, "c1")),
        /^11 pod shop\/gone-0 is not known/,
      );
    });

    it("a crash between journal and report loses nothing", async () => {
      const node = await suite.startNode("node-m", suite.gate.kubeConfig());
      const pod = await suite.cluster.boundPod("crash-0", "node-m");
      await node.runtime.add(sandbox(pod, "c1"));
      await suite.cluster.untilStatus("crash-0", "Attached c1");
      await suite.cluster.forget(pod);
      const held = suite.gate.hold(STATUS_WRITES);
      await node.runtime.del(sandbox(pod, "c1"));
      await held.arrived;
      await node.stop("SIGKILL");
      assert.equal(await suite.cluster.status("crash-0"), "Attached c1");
      await node.reach(suite.plane.kubeConfig());
      await node.start();
      await suite.cluster.untilStatus("crash-0", "Detached c1");
      await held.release();
      assert.equal(await suite.cluster.status("crash-0"), "Detached c1");
    });
  });
}
