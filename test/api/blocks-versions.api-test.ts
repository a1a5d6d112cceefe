// SPDX-License-Identifier: Apache-2.0
// Agents and webhooks of the version before beside those of this one, both ways, while pods come and go from blocks.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { POOLS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { type Baseline, BEFORE_SINGLES, checkOutBaseline } from "../versions/baseline.ts";
import type { AgentNode } from "./agent-node.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster, type Box } from "./block-cluster.ts";
import { berthctlCheck } from "./chaos-end.ts";
import { change, makePod } from "./replica-objects.ts";

const AGENT = "ipam-plugin/agent/main.ts";
/** What a version says that serves no pods from blocks. */
const SERVES_NONE = /^7 no IP ranges specified/;
const LATER = /^11 /;
const CORRUPT = /corrupt|cannot be read|unreadable|STATE_CORRUPT/i;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("blocks beside the version before", () => {
    let cluster: BlockCluster;
    let baseline: Baseline;
    before(async () => {
      baseline = await checkOutBaseline();
      if ("root" in baseline) cluster = await BlockCluster.open(2);
    });
    after(async () => {
      await cluster?.close();
      if ("root" in baseline) await baseline.remove();
    });
    afterEach(async () => {
      for (const node of cluster?.nodes.values() ?? []) {
        if (node.main === undefined) continue;
        node.main = undefined;
        await node.stop();
        await node.start();
      }
      await cluster?.clear();
    });

    /** Pods of a node one after the other, until it is over. An ADD may fail only as its agent's version must, or for now. */
    class Lane {
      lives = 0;
      unserved = 0;
      readonly #node: AgentNode;
      readonly #knowsBlocks: () => boolean;

      constructor(node: AgentNode, knowsBlocks: () => boolean) {
        this.#node = node;
        this.#knowsBlocks = knowsBlocks;
      }

      async run(over: AbortSignal): Promise<void> {
        while (!over.aborted) {
          const box = await this.#up(over);
          await pause(20);
          if (box !== undefined) await cluster.down(box);
          if (box !== undefined) this.lives++;
        }
      }

      async #up(over: AbortSignal): Promise<Box | undefined> {
        const pod = await cluster.pod(this.#node);
        for (let mayRefuse = false; !over.aborted; ) {
          mayRefuse ||= !this.#knowsBlocks();
          const said = await cluster.tryUp(pod);
          if (typeof said !== "string") return said;
          // one that was on its way when the agent was exchanged may have been answered by either
          mayRefuse ||= !this.#knowsBlocks();
          assert.ok(LATER.test(said) || (mayRefuse && SERVES_NONE.test(said)), said);
          if (SERVES_NONE.test(said)) this.unserved++;
          mayRefuse = false;
          await pause(200);
        }
        await cluster.forget(pod);
        return undefined;
      }
    }

    /** Until the act is over, and every lane has been served once more. */
    async function underLoad<T>(
      lanes: readonly Lane[],
      act: (running: Promise<unknown>) => Promise<T>,
    ): Promise<T> {
      const over = new AbortController();
      const running = Promise.all(lanes.map((lane) => lane.run(over.signal)));
      running.catch(() => over.abort());
      try {
        const done = await act(running);
        const before = lanes.map(({ lives }) => lives);
        const served = () => lanes.every(({ lives }, n) => lives > (before[n] ?? 0)) || undefined;
        await Promise.race([running, eventually("all lanes are served again", served)]);
        return done;
      } finally {
        over.abort();
        await running;
      }
    }

    /** Both agents are exchanged for that version, one after the other. What they said before that. */
    async function exchange(main: string | undefined, running: Promise<unknown>): Promise<readonly string[]> {
      const logs: string[] = [];
      for (const node of cluster.nodes.values()) {
        await node.stop();
        logs.push(node.log);
        node.main = main;
        await node.start();
        await Promise.race([running, pause(1_500)]);
      }
      return logs;
    }

    function corruptIn(logs: readonly string[]): readonly string[] {
      const webhooks = cluster.replicas.all.map(({ process }) => process.tail());
      const all = [...logs, ...webhooks].join("\n").split("\n");
      return all.filter((line) => CORRUPT.test(line));
    }

    it("agents are upgraded, rolled back and upgraded again under load: no address twice, nothing corrupt", async (t) => {
      if ("why" in baseline) return t.skip(baseline.why);
      const old = join(baseline.root, AGENT);
      const serves = existsSync(join(baseline.root, "ipam-plugin/agent/blocks"));
      await cluster.makePool("rolling", {
        ...{ ranges: [{ cidr: "10.38.0.0/24" }], blockSize: { ipv4: 29 } },
        ...{ default: true, cooldown: "1s" },
      });
      await cluster.untilOwned({ n1: 2, n2: 2 });
      const stays = await cluster.upAll(cluster.node("n1"), 2);
      const lanes = [...cluster.nodes.values()].flatMap((node) =>
        Array.from({ length: 4 }, () => new Lane(node, () => serves || node.main === undefined)),
      );
      const logs: string[] = [];
      await underLoad(lanes, async (running) => {
        for (const main of [old, undefined, old, undefined]) {
          logs.push(...(await exchange(main, running)));
          for (const { pod, said, addresses } of stays)
            assert.deepEqual(await pod.node.runtime.add(said), addresses, "the same answer again");
        }
      });
      assert.deepEqual(corruptIn([...logs, ...[...cluster.nodes.values()].map(({ log }) => log)]), []);
      for (const box of stays) await cluster.down(box);
      const sum = (of: (lane: Lane) => number) => lanes.reduce((count, lane) => count + of(lane), 0);
      const [lives, unserved] = [sum((lane) => lane.lives), sum((lane) => lane.unserved)];
      console.log(`${lives} lives; the version before refused ${unserved} ADDs, as it does alone`);
      if (serves) assert.equal(unserved, 0);
      await isInOrder();
    });

    it("a webhook of it reads what this one wrote and is read by it, and corrupts no block", async (t) => {
      if ("why" in baseline) return t.skip(baseline.why);
      const [replica] = cluster.replicas.all;
      assert.ok(replica);
      await cluster.makePool("cut", {
        ...{ ranges: [{ cidr: "10.39.0.0/24" }], blockSize: { ipv4: 29 } },
        ...{ default: true, cooldown: "1s" },
      });
      await cluster.makePool("fixed", { ranges: [{ cidr: "10.39.1.0/24" }], cooldown: "1s" });
      const n1 = cluster.node("n1");
      const own = await cluster.upAll(n1, 3);
      const blocks = async () => (await cluster.blocks()).map(({ uid }) => uid).sort();
      const were = await blocks();
      const rounds = [
        { main: join(baseline.root, "webhook/main.ts"), lasts: [10, 11, 12, 13] },
        { main: undefined, lasts: [20, 21, 22, 23] },
      ];
      for (const { main, lasts } of rounds) {
        await cluster.replicas.exchange(replica, main);
        for (const last of lasts) {
          const annotations = { "berth.dev/ips": `10.39.1.${last}` };
          const name = `pinned-${last}`;
          const { metadata } = await makePod(
            cluster.api,
            { namespace: "shop", name },
            { annotations, node: "n1" },
          );
          const pod = { namespace: "shop", name, uid: metadata.uid, node: n1 };
          const box = await cluster.up(pod);
          assert.deepEqual(box.addresses, [`10.39.1.${last}/24`]);
          await cluster.endFixed(box);
        }
      }
      const kept = new Set(await blocks());
      assert.ok(
        were.every((uid) => kept.has(uid)),
        "no block was taken",
      );
      for (const { pod, said, addresses } of own)
        assert.deepEqual(await pod.node.runtime.add(said), addresses);
      assert.deepEqual(corruptIn([]), []);
      for (const box of own) await cluster.down(box);
      await isInOrder();
    });

    it("an agent that knows of no single addresses gives those that it gets, and refuses the journal of a node that gave some back", async (t) => {
      const before = await checkOutBaseline(BEFORE_SINGLES);
      if ("why" in before) return t.skip(before.why);
      t.after(before.remove);
      const main = join(before.root, AGENT);
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      await n2.stop();
      n2.main = main;
      await n2.start();
      const pool = {
        ranges: [{ cidr: "10.41.0.0/24", from: "10.41.0.50", to: "10.41.0.70" }],
        cooldown: "1s",
      };
      await cluster.makePool("parted", { ...pool, blockSize: { ipv4: 30 }, default: true });
      const all = await cluster.upAll(n1, 21);
      await cluster.untilOwned({ n1: 6 });
      // one address of each block stays in use
      const perBlock = Map.groupBy(all, ({ addresses }) => Number(addresses[0]?.split(/[./]/)[3]) >> 2);
      const stays = [...perBlock.values()].flatMap((boxes) => boxes.slice(0, 1));
      for (const box of all) if (!stays.includes(box)) await cluster.down(box);
      // each waits for a round of asking and giving back, and all together no longer than a pod is waited for
      const parted = await cluster.upAll(n2, 3);
      const singles = (await cluster.blocks()).filter(({ record }) => record.within !== undefined);
      assert.ok(singles.length >= 3 && singles.every(({ record }) => record.node === "n2"));
      await n1.stop();
      n1.main = main;
      n1.launch();
      await eventually("it says why it does not serve", () => /by a newer Berth/.test(n1.log) || undefined);
      const refused = await n1.stop();
      assert.notEqual(refused?.rc, 0);
      n1.main = undefined;
      await n1.start();
      for (const { pod, said, addresses } of [...stays, ...parted])
        assert.deepEqual(await pod.node.runtime.add(said), addresses, "the same answer again");
      assert.equal(cluster.addresses().length, 9);
      for (const box of [...stays, ...parted]) await cluster.down(box);
      await change(cluster.api, POOLS, { name: "parted" }, { spec: { disabled: true } });
      await eventually("all is back", async () => (await cluster.blocks()).length === 0 || undefined, 90_000);
      await n1.stop();
      n1.main = main;
      await n1.start();
      assert.deepEqual(corruptIn([n1.log, n2.log]), []);
      await isInOrder();
    });

    async function isInOrder(): Promise<void> {
      let last = "";
      await eventually("berthctl check finds nothing", async () => {
        last = await berthctlCheck(cluster.plane);
        return last.startsWith("0 ok") || undefined;
      }).catch((error: unknown) => assert.fail(`${String(error)}\n${last}`));
    }
  });
}
