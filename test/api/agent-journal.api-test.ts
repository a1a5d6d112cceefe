// SPDX-License-Identifier: Apache-2.0
// An agent of a cluster's node that comes up in the same boot without what it knew of its sandboxes.
import assert from "node:assert/strict";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isRefusal } from "../../allocator/base/errors.ts";
import { eventually } from "../support/eventually.ts";
import { sandbox } from "./agent-cluster.ts";
import type { AgentNode } from "./agent-node.ts";
import { AgentSuite } from "./agent-suite.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { openControlPlane } from "./shared-plane.ts";

const RANGES = { subnet: "10.9.0.0/24" };
const WORDS = /^50 the journal .* is not the one that has served this node since it booted/;
/** Sandboxes are looked at every 30 s. */
const LOOKED_MS = 90_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  const suite = new AgentSuite(openControlPlane);

  /** The path of a network namespace that is there until it is removed. */
  async function netnsOn(node: AgentNode, name: string): Promise<string> {
    const path = join(node.folder, "netns", name);
    await mkdir(join(node.folder, "netns"), { recursive: true });
    await writeFile(path, "");
    return path;
  }

  /** What `helm upgrade` with another `agent.dataDir` leaves of the journal. */
  async function loseJournal(node: AgentNode): Promise<void> {
    await node.stop("SIGKILL");
    await rename(join(node.folder, "data"), join(node.folder, "lost"));
  }

  describe("an agent without its journal in the same boot", () => {
    it("serves nothing, gives no address twice and lets no claim go, until it has its journal again", async () => {
      const node = await suite.startNode("node-p");
      node.runtime.ipam = RANGES;
      const pod = await suite.cluster.boundPod("kept-0", "node-p");
      const plain = await suite.cluster.pod("plain-0", "node-p");
      const [a, b] = [await netnsOn(node, "a"), await netnsOn(node, "b")];
      assert.deepEqual(await node.runtime.add(sandbox(pod, "a", { netns: a })), [pod.cidr]);
      assert.deepEqual(await node.runtime.add(sandbox(plain, "b", { netns: b })), ["10.9.0.2/24"]);
      await suite.cluster.untilStatus("kept-0", "Attached a");
      await loseJournal(node);
      await suite.cluster.forget(pod);
      node.launch();
      const other = await suite.cluster.pod("other-0", "node-p");
      await eventually("it refuses in words", async () =>
        WORDS.test(await node.runtime.refused("STATUS")) ? true : undefined,
      );
      assert.match(await node.runtime.refused("ADD", sandbox(other, "c")), WORDS);
      assert.equal(await suite.cluster.status("kept-0"), "Attached a", "its sandbox may be up");
      await node.stop("SIGKILL");
      await rm(join(node.folder, "data"), { recursive: true });
      await rename(join(node.folder, "lost"), join(node.folder, "data"));
      await node.start();
      assert.deepEqual(await node.runtime.add(sandbox(other, "c")), ["10.9.0.3/24"]);
      await node.runtime.del(sandbox(pod, "a", { netns: a }));
      await suite.cluster.untilStatus("kept-0", "Detached a");
    });

    it("lets a claim go that its status says is attached here when the network namespace is gone, and no sooner", async () => {
      const node = await suite.startNode("node-q");
      const pod = await suite.cluster.boundPod("last-1", "node-q");
      const netns = await netnsOn(node, "a");
      assert.deepEqual(await node.runtime.add(sandbox(pod, "a", { netns })), [pod.cidr]);
      await suite.cluster.untilStatus("last-1", "Attached a");
      await loseJournal(node);
      await rm(`${node.runtime.socket}.journal`); // and the mark, so that nothing tells it
      await suite.cluster.forget(pod);
      await node.start();
      const next = await suite.cluster.pod("last-1", "node-q");
      const bound = await suite.cluster.bind(next, "node-q");
      assert.ok(!isRefusal(bound), "on the same node the agent looks itself");
      assert.match(
        await node.runtime.refused("ADD", sandbox(next, "b")),
        /^11 .*container a of another pod still uses it/,
      );
      await pause(2_000);
      assert.notEqual(await suite.cluster.status("last-1"), "Detached a");
      await rm(netns);
      await eventually(
        "the next pod has it",
        async () => {
          const run = await node.runtime.call("ADD", sandbox(next, "b"));
          return run.rc === 0 ? true : undefined;
        },
        LOOKED_MS,
      );
    });
  });
}
