// SPDX-License-Identifier: Apache-2.0
// Pods that ask for nothing, from one small range for both nodes, whatever happens to nodes and agents.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { AGENT_NAMESPACE } from "./berth.ts";
import { ALL, BlockLab, lasts, OUT_OF_SERVICE, SHARED } from "./block-lab.ts";
import { caseOptions, Times } from "./cases.ts";
import type { Lab } from "./lab.ts";
import { deployment, pod } from "./objects.ts";
import { containersOf, isSame, kill } from "./processes.ts";

/** The last word of its command. */
const AGENT = "ipam-plugin/agent/main.js";
const SYSTEM = { namespace: "kube-system" };

let blocks: BlockLab;
let lab: Lab;
before(async () => {
  blocks = await BlockLab.open("blocks");
  ({ lab } = blocks);
});
afterEach(async () => await blocks.clear());
after(async () => await blocks?.close());

/** Ends both agents as nothing can refuse, and waits until kubelet has started them again. */
async function killAgents(): Promise<void> {
  for (const { name } of lab.cluster.nodes) {
    const [agent] = containersOf(name, AGENT);
    assert.ok(agent !== undefined, `${name} has an agent`);
    kill(agent);
    await lab.until(`the agent of ${name} is another process`, async () =>
      containersOf(name, AGENT).some((one) => !isSame(agent) && one.pid !== agent.pid),
    );
  }
  await agentsAreReady();
}

async function agentsAreReady(): Promise<void> {
  await lab.must(["rollout", "status", "daemonset/berth-agent", "--timeout=180s"], {
    namespace: AGENT_NAMESPACE,
  });
}

/** Deletes five pods of the deployment, without waiting for them. Others come at once. */
async function someGo(round: number): Promise<void> {
  const pods = await lab.running("app=all");
  const names = pods.filter((_, n) => n % 3 === round % 3).map(({ name }) => name);
  if (names.length > 0) await lab.must(["delete", "pod", "--wait=false", ...names.slice(0, 5)]);
}

describe("blocks", () => {
  it(
    "E0571 21 pods of two nodes share .50 to .70 without one annotation, kube-system's among them, and the 22nd is refused in words",
    caseOptions(),
    async () => {
      const times = new Times("E0571");
      await blocks.makePools(SHARED);
      const dns = { labels: { "k8s-app": "kube-dns" }, node: "node-a" };
      await lab.apply([pod("coredns", dns)], SYSTEM);
      await lab.apply([deployment("all", { replicas: 20 })]);
      const all = [
        ...(await lab.runs("app=all", 20)),
        ...(await lab.runs("k8s-app=kube-dns", 1, undefined, SYSTEM)),
      ];
      times.step("running");
      assert.deepEqual(lasts(all), ALL);
      assert.equal(new Set(all.map(({ node }) => node)).size, 2);
      await lab.pingAll(all);
      times.step("pinged");
      await lab.apply([pod("late", { node: "node-b" })]);
      await lab.until("the 22nd is told why", async () =>
        (await lab.events("late")).some((event) =>
          /pool "shared", whose blocks are \/32.*nodes have \d+ and \d+ of the pool's blocks/s.test(event),
        ),
      );
      times.step("refused");
      await lab.must(["scale", "deployment/all", "--replicas=19"]);
      await lab.runsAgain("late");
      times.step("had the last one");
      await lab.check();
      times.end();
    },
  );

  it(
    "E0572 a drained node's pods have addresses on the other one, down to the last",
    caseOptions(),
    async () => {
      const times = new Times("E0572");
      await blocks.makePools(SHARED);
      await lab.apply([deployment("all", { replicas: 21 })]);
      await lab.runs("app=all", 21);
      times.step("running");
      await lab.must([
        ...["drain", "node-a", "--pod-selector=app=all", "--ignore-daemonsets", "--force"],
        ...["--delete-emptydir-data", "--timeout=120s"],
      ]);
      try {
        const now = await lab.runs("app=all", 21, (pods) => pods.every(({ node }) => node === "node-b"));
        times.step("moved");
        assert.deepEqual(lasts(now), ALL);
        await lab.pingAll(now);
      } finally {
        await lab.must(["uncordon", "node-a"]);
      }
      await lab.check();
      times.end();
    },
  );

  it(
    "E0573 a node without power keeps its blocks until it is out of service",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0573");
      await blocks.makePools(SHARED);
      // Berth's own pods of the node without power, of which there are up to two, come over too, and want addresses
      await lab.apply([deployment("all", { replicas: 18 })]);
      const were = await lab.runs("app=all", 18);
      const lost = were.filter(({ node }) => node === "node-a");
      await lab.cluster.powerOff("node-a");
      await lab.nodeBecomes("node-a", "Unknown");
      times.step("lost");
      await lab.must(["delete", "pod", "--force", "--grace-period=0", ...lost.map(({ name }) => name)]);
      await lab.until("its blocks are not given to others", async () =>
        (await lab.eventsWith("reason=FailedCreatePodSandBox")).some((event) =>
          event.includes('pool "shared"'),
        ),
      );
      const of = async () =>
        (await lab.must(["get", "ipblocks", '-o=jsonpath={range .items[*]}{.spec.node}{"\\n"}{end}']))
          .split("\n")
          .filter((node) => node === "node-a").length;
      assert.ok((await of()) >= lost.length, "they are node-a's");
      times.step("kept");
      await lab.must(["taint", "node", "node-a", `${OUT_OF_SERVICE}=nodeshutdown:NoExecute`]);
      const now = await lab.runs("app=all", 18, (pods) => pods.every(({ node }) => node === "node-b"));
      times.step("moved");
      assert.equal(new Set(lasts(now)).size, 18);
      await lab.pingAll(now);
      times.end();
      await lab.cluster.powerOn("node-a");
      await lab.must(["taint", "node", "node-a", `${OUT_OF_SERVICE}-`]);
      await lab.nodeReturns("node-a");
    },
  );

  it(
    "E0576 pods come and go from 21 addresses while agents are upgraded and killed, and each has its own",
    caseOptions({ timeoutMs: 600_000 }),
    async () => {
      const times = new Times("E0576");
      await blocks.makePools(SHARED);
      await lab.apply([deployment("all", { replicas: 18 })]);
      await lab.runs("app=all", 18);
      times.step("running");
      let isOver = false;
      let rounds = 0;
      const load = (async () => {
        for (; !isOver; rounds++) {
          await someGo(rounds);
          await pause(2_000);
        }
      })();
      try {
        await lab.must(["rollout", "restart", "daemonset/berth-agent"], { namespace: AGENT_NAMESPACE });
        await agentsAreReady();
        times.step("upgraded");
        for (let n = 0; n < 3; n++) await killAgents();
        times.step("killed");
      } finally {
        isOver = true;
        await load;
      }
      const now = await lab.runs("app=all", 18);
      times.step("settled");
      assert.equal(new Set(lasts(now)).size, 18);
      await lab.pingAll(now);
      await lab.check();
      times.end({ rounds });
    },
  );
});
