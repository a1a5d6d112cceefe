// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../support/eventually.ts";
import { sandbox } from "./agent-cluster.ts";
import type { AgentNode } from "./agent-node.ts";
import { AgentSuite } from "./agent-suite.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { openControlPlane } from "./shared-plane.ts";

const RANGES = { subnet: "10.9.0.0/24" };

/** Whether the agent's journal has the list of all pools, which is a row without a name. */
function keepsPools(node: AgentNode): true | undefined {
  const journal = new DatabaseSync(join(node.folder, "data/agent.db"), { readOnly: true });
  try {
    return journal.prepare("SELECT 1 FROM block_pools WHERE name = ''").get() && true;
  } finally {
    journal.close();
  }
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  const suite = new AgentSuite(openControlPlane);

  describe("without the API server", () => {
    it("ADDs and DELs go on, and what became of them is told later", async () => {
      const node = await suite.startNode("node-n");
      const [a, b] = [
        await suite.cluster.boundPod("out-0", "node-n"),
        await suite.cluster.boundPod("out-1", "node-n"),
      ];
      await node.runtime.add(sandbox(a, "c1"));
      await suite.cluster.untilStatus("out-0", "Attached c1");
      await pause(300); // the second binding is seen by now, or the ADD below fails
      await suite.plane.apiServer.stop("SIGKILL");
      await node.runtime.del(sandbox(a, "c1"));
      assert.deepEqual(await node.runtime.add(sandbox(a, "c2")), [a.cidr]);
      assert.deepEqual(await node.runtime.add(sandbox(b, "c3")), [b.cidr]);
      await node.runtime.del(sandbox(b, "c3"));
      await node.runtime.silently("STATUS");
      assert.equal((await node.fetch("/readyz")).status, 200);
      await suite.plane.start();
      await suite.cluster.forget(b);
      await suite.cluster.untilStatus("out-0", "Attached c2", 40_000);
      await suite.cluster.untilStatus("out-1", "Detached c3", 40_000);
    });

    it("an agent that starts then serves what needs none, and everything once it is back", async () => {
      const node = await suite.makeNode("node-o");
      const pod = await suite.cluster.boundPod("blind-0", "node-o");
      await node.start();
      await node.runtime.add(sandbox(pod, "c1"));
      // blocks may be listed later than claims, and which pools there are is known and kept only then
      await eventually("the journal has which pools there are", () => keepsPools(node));
      await node.stop();
      await suite.plane.apiServer.stop("SIGKILL");
      await node.serve();
      await node.runtime.del(sandbox(pod, "c1"));
      const annotated = (annotations: object) => ({
        conf: { runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations } },
      });
      const plain = { name: "static-0", uid: "u-1" };
      const words =
        "the claims of node node-o are not loaded: the API server has not answered since the agent started; try again";
      assert.deepEqual(
        await node.runtime.add(sandbox(plain, "c2", { ipam: RANGES, ...annotated({ team: "data" }) })),
        ["10.9.0.2/24"],
      );
      assert.equal(await node.runtime.refused("STATUS"), `50 ${words}`);
      assert.equal((await node.fetch("/readyz")).status, 503);
      assert.equal(await node.runtime.refused("ADD", sandbox(pod, "c3")), `11 ${words}`);
      await suite.plane.start();
      await node.untilReady();
      assert.deepEqual(await node.runtime.add(sandbox(pod, "c3")), [pod.cidr]);
      await node.runtime.silently("STATUS");
    });
  });
}
