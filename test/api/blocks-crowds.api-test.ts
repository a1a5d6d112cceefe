// SPDX-License-Identifier: Apache-2.0
// Many pods that ask for nothing, served out of blocks: at once, and while agents are killed.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../support/eventually.ts";
import { isFull, runsOf } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster } from "./block-cluster.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("pods that ask for nothing, on nodes with blocks", () => {
    let cluster: BlockCluster;
    before(async () => {
      cluster = await BlockCluster.open();
    });
    after(() => cluster?.close());
    afterEach(() => cluster.clear());

    it("have their addresses once, whoever is killed under load", async () => {
      await cluster.makePool("busy", {
        ranges: [{ cidr: "10.22.0.0/26" }],
        blockSize: { ipv4: 30 },
        default: true,
        cooldown: "0s",
      });
      const nodes = [cluster.node("n1"), cluster.node("n2")];
      const over = new AbortController();
      let lives = 0;
      const live = async (n: number) => {
        const node = nodes[n % 2] ?? assert.fail();
        while (!over.signal.aborted) {
          const box = await cluster.up(await cluster.pod(node));
          await pause(20);
          await cluster.down(box);
          lives++;
        }
      };
      const lanes = Array.from({ length: isFull ? 12 : 6 }, (_, n) => live(n));
      const rounds = runsOf(4, 2);
      for (let round = 0; round < rounds; round++) {
        const node = nodes[round % 2] ?? assert.fail();
        const until = lives + 20;
        await Promise.race([eventually("pods live", () => lives >= until || undefined), Promise.all(lanes)]);
        await node.stop("SIGKILL");
        await node.start();
      }
      over.abort();
      await Promise.all(lanes);
      assert.deepEqual(cluster.lasts(), []);
      console.log(`${lives} lives of pods with ${rounds} agents killed`);
    });

    it("are served 110 at once, after a reboot", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("many", {
        ranges: [{ cidr: "10.25.0.0/20" }],
        blockSize: { ipv4: 26 },
        default: true,
        cooldown: "10s",
      });
      const before = await cluster.upAll(n1, 110);
      await cluster.reboot(n1);
      for (const { pod } of before) await cluster.forget(pod);
      const began = performance.now();
      const boxes = await cluster.upAll(n1, 110);
      console.log(`110 pods at once after a reboot: ${Math.round(performance.now() - began)} ms`);
      assert.equal(new Set(boxes.flatMap(({ addresses }) => addresses)).size, 110);
    });
  });
}
