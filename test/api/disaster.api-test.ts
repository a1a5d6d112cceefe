// SPDX-License-Identifier: Apache-2.0
// etcd is put back to a snapshot under a replica and two agents that live on: docs/operations.md, "Disaster".
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { METRICS } from "../../system/metric-definitions.ts";
import type { Definition } from "../../system/metric-shape.ts";
import { eventually } from "../support/eventually.ts";
import { sandbox } from "./agent-cluster.ts";
import type { AgentNode } from "./agent-node.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { DisasterCluster } from "./disaster-cluster.ts";

/** Watches that were cut off wait up to 30 s before they look again. */
const RELIST_MS = 90_000;
const STRAYS = "berth_agent_stray_sandboxes";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("etcd restored from an old snapshot", () => {
    let cluster: DisasterCluster;
    let late: { name: string; uid: string };
    let before0: { name: string; uid: string };
    let moved: { name: string; uid: string };

    const strays = (node: AgentNode, wanted: number) =>
      eventually(
        `${node.name} has ${wanted} stray sandboxes`,
        async () => ((await cluster.agentSays(node, STRAYS)) === wanted ? true : undefined),
        RELIST_MS,
      );

    /** `late-0` was made since, `db-0` has moved from n1 to n2 since. */
    before(async () => {
      cluster = await DisasterCluster.open();
      before0 = await cluster.pod("db-0", "10.20.0.50", "n1");
      await cluster.n1.runtime.add(sandbox(before0, "c1"));
      await cluster.snapshot.take();
      late = await cluster.pod("late-0", "10.20.0.60", "n1");
      assert.deepEqual(await cluster.n1.runtime.add(sandbox(late, "c2")), ["10.20.0.60/24"]);
      await cluster.n1.runtime.del(sandbox(before0, "c1"));
      await cluster.delete("db-0");
      moved = await cluster.pod("db-0", "10.20.0.50", "n2");
      assert.deepEqual(await cluster.n2.runtime.add(sandbox(moved, "c3")), ["10.20.0.50/24"]);
      await strays(cluster.n1, 0);
      await cluster.snapshot.restore();
    });

    after(() => cluster?.close());

    it("each part exposes all of its metrics, and none of the other's", async () => {
      const typed = (text: string) => [...text.matchAll(/^# TYPE (berth_\w+) /gm)].map(([, name]) => name);
      const of = (part: string) =>
        Object.entries<Definition>(METRICS)
          // this one does not manage the addresses of Cilium's nodes
          .filter(([name, { by }]) => (by === part || by === "both") && !name.startsWith("berth_cilium_"))
          .map(([name]) => name);
      const agent = await (await cluster.n1.fetch("/metrics")).text();
      assert.deepEqual(typed(await cluster.webhookMetrics()).toSorted(), of("webhook").toSorted());
      assert.deepEqual(typed(agent).toSorted(), of("agent").toSorted());
    });

    it("everybody who lived through it has listed again what there is", async () => {
      const look = async () => ((await cluster.webhookSays("berth_reservations")) === 1 ? true : undefined);
      await eventually("the webhook knows one reservation", look, RELIST_MS);
      assert.equal((await cluster.bindingOf("db-0"))?.podUID, before0.uid);
      assert.equal(await cluster.bindingOf("late-0"), undefined);
    });

    it("agents tell of the sandboxes that nobody else knows of", async () => {
      await strays(cluster.n1, 1);
      await strays(cluster.n2, 1);
      const words = "sandbox has addresses that are not bound to its pod; remove it";
      for (const [node, id, address] of [
        [cluster.n1, "c2", "10.20.0.60"],
        [cluster.n2, "c3", "10.20.0.50"],
      ] as const) {
        const line = await eventually(
          `${node.name} tells of ${id}`,
          () => node.log.split("\n").find((one) => one.includes(words)),
          RELIST_MS,
        );
        const { containerID, address: reported, level } = JSON.parse(line);
        assert.deepEqual([containerID, reported, level], [id, address, "error"]);
      }
    });

    it("an agent that begins anew knows them from its journal", async () => {
      await cluster.n2.stop("SIGKILL");
      await cluster.n2.start();
      await strays(cluster.n2, 1);
    });

    it("on its own node the address of such a sandbox goes to nobody else", async () => {
      const thief = await cluster.pod("thief-0", "10.20.0.60", "n1");
      assert.match(
        await cluster.n1.runtime.refused("ADD", sandbox(thief, "c4")),
        /10\.20\.0\.60 is in use on this node: container c2/,
      );
    });

    it("once they are removed, everything goes on as the snapshot has it", async () => {
      await cluster.n1.runtime.del(sandbox(late, "c2"));
      await cluster.n2.runtime.del(sandbox(moved, "c3"));
      await strays(cluster.n1, 0);
      await strays(cluster.n2, 0);
      assert.deepEqual(await cluster.n1.runtime.add(sandbox(before0, "c5")), ["10.20.0.50/24"]);
      const again = await cluster.pod("new-0", "10.20.0.61", "n2");
      assert.deepEqual(await cluster.n2.runtime.add(sandbox(again, "c6")), ["10.20.0.61/24"]);
      await strays(cluster.n1, 0);
      await strays(cluster.n2, 0);
    });
  });
}
