// SPDX-License-Identifier: Apache-2.0
// CIDRs of Nodes on a real API server, written with the webhook's own account: whoever controls, and whenever he dies.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { itemPath, NODES, POOLS } from "../../kube/api/resource.ts";
import { startPools } from "../../webhook/controllers/pools/controller.ts";
import { eventually } from "../support/eventually.ts";
import { FailingStore } from "../support/failing-store.ts";
import { deathsAt, drawn } from "../support/runs.ts";
import { merge } from "./agent-calls.ts";
import { rightsOf } from "./audit-log.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { NodeCidrCluster, nodesRole } from "./node-cidr-cluster.ts";

const ZONE = "topology.kubernetes.io/zone";
const BOTH = ["IPv4", "IPv6"] as const;

/** Answers of Node patches that are lost, or never sent: as a process that dies there sees them. */
function dyingAt(
  connection: Connection,
  at: number,
  when: "before" | "after",
): Connection & { readonly patches: number } {
  let patches = 0;
  return {
    get patches() {
      return patches;
    },
    call: async (call: Parameters<Connection["call"]>[0]) => {
      const isTold = call.method === "PATCH" && call.path.startsWith("/api/v1/nodes/");
      if (isTold && ++patches === at && when === "before") throw new Error("the process died");
      const answer = await connection.call(call);
      if (isTold && patches === at) throw new Error("the process died");
      return answer;
    },
    stream: (...of: Parameters<Connection["stream"]>) => connection.stream(...of),
    close: () => {},
  } as Connection & { readonly patches: number };
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("CIDRs of Nodes on a real API server", () => {
    let world: NodeCidrCluster;
    before(async () => {
      world = await NodeCidrCluster.open();
    });
    after(() => world?.close());
    afterEach(() => world.clear());

    it("come from the pools of the nodes' zones, of both families, with the annotations that Cilium reads", async () => {
      await world.applyPool("east", ["10.250.0.0/23", "172.20.0.0/23"], {
        nodeSelector: { matchLabels: { [ZONE]: "east" } },
      });
      await world.applyPool("west", ["10.251.0.0/23"], { nodeSelector: { matchLabels: { [ZONE]: "west" } } });
      await world.applyPool("six", ["fd00:10::/48"]);
      world.start({ nodeCIDRs: BOTH });
      await world.addNode("a", { [ZONE]: "east" });
      await world.addNode("b", { [ZONE]: "east" });
      await world.addNode("c", { [ZONE]: "west" });
      const [a = [], b = [], c = []] = await world.served(["a", "b", "c"], 2);
      assert.match(`${a[0]} ${b[0]}`, /^(10\.250|172\.20)\.[01]\.0\/24 (10\.250|172\.20)\.[01]\.0\/24$/);
      assert.match(c.join(), /^10\.251\.[01]\.0\/24,fd00:10:0:[0-9a-f]*:?:?\/64$/);
      await world.assertDisjoint();
      const { spec, metadata } = await world.node("c");
      assert.equal(spec.podCIDR, c[0]);
      assert.deepEqual(
        ["network.cilium.io/", "io.cilium.network."].map((prefix) => [
          metadata.annotations?.[`${prefix}ipv4-pod-cidr`],
          metadata.annotations?.[`${prefix}ipv6-pod-cidr`],
        ]),
        [c, c],
      );
      const records = (await world.cluster.all("block")).filter(({ record }) => record.node === "c");
      assert.deepEqual(
        records.map(({ key, record }) => [key, record.use]).toSorted(),
        c.toSorted().map((one) => [one, "PodCIDR"]),
      );
      for (const name of ["d", "e"]) await world.addNode(name, { [ZONE]: "east" });
      await world.served(["d", "e"], 2); // the pool's second range
      await world.assertDisjoint();
      await world.addNode("f", { [ZONE]: "east" });
      const notice = await eventually("it is told", () =>
        world.cluster.notices.all.find(({ regarding }) => regarding.name === "f"),
      );
      assert.match(
        notice.note,
        /^no IPv4 CIDR is free for this node: pool "east" has 4 CIDRs of \/24, of which nodes have a 1, b 1, d 1, e 1; add a range/,
      );
      assert.deepEqual(await world.cidrsOf("f"), []);
    });

    it("are taken over where Nodes have some, and those who share are named", async () => {
      await world.applyPool("all", ["10.244.0.0/22"]);
      await world.addNode("old", {}, { podCIDR: "10.244.1.0/24", podCIDRs: ["10.244.1.0/24"] });
      world.start();
      for (const name of ["a", "b", "c"]) await world.addNode(name);
      await world.served(["a", "b", "c"]);
      await world.assertDisjoint();
      assert.equal((await world.cluster.store.get("block", "10.244.1.0/24"))?.record.node, "old");
      await world.addNode("late", {}, { podCIDR: "10.244.1.0/25", podCIDRs: ["10.244.1.0/25"] });
      const notice = await eventually("it is told", () =>
        world.cluster.notices.all.find(({ regarding }) => regarding.name === "late"),
      );
      assert.deepEqual([notice.reason, notice.type], ["PodCIDRShared", "Warning"]);
      assert.match(
        notice.note,
        /10\.244\.1\.0\/25 shares addresses with 10\.244\.1\.0\/24 of pool "all", which node "old" has/,
      );
    });

    it("stay what Cilium's annotations say of a Node that has none in its spec", async () => {
      await world.applyPool("all", ["10.244.0.0/23"]);
      const nodes = new Client(world.cluster.connection, NODES);
      const annotations = { "network.cilium.io/ipv4-pod-cidr": "10.244.1.0/24" };
      assert.ok(await nodes.create({ name: "annotated" }, { metadata: { annotations } }));
      world.start();
      await world.addNode("a");
      assert.deepEqual(await world.served(["a"]), [["10.244.0.0/24"]]);
      await eventually("it is recorded", async () => {
        const block = await world.cluster.store.get("block", "10.244.1.0/24");
        return block?.record.node === "annotated" ? true : undefined;
      });
      const now = await world.node("annotated");
      assert.deepEqual([now.metadata.annotations, now.spec.podCIDRs], [annotations, undefined]);
    });

    it("come back when a Node is gone for good, and stay with one that is made again", async () => {
      await world.applyPool("all", ["10.244.0.0/24"]);
      world.start();
      await world.addNode("a");
      await world.served(["a"]);
      await world.cluster.delete(NODES, "a");
      await world.addNode("a");
      assert.deepEqual(await world.served(["a"]), [["10.244.0.0/24"]]);
      const { uid } = (await world.node("a")).metadata;
      assert.equal((await world.cluster.store.get("block", "10.244.0.0/24"))?.record.nodeUID, uid);
      await world.cluster.delete(NODES, "a");
      await world.addNode("b");
      assert.deepEqual(await world.served(["b"], 1, 5_000), [["10.244.0.0/24"]]);
    });

    it("stay with a Node's name for the whole grace each time that the Node goes", async () => {
      await world.applyPool("all", ["10.244.0.0/24"]);
      world.start();
      await world.addNode("a");
      await world.served(["a"]);
      await world.cluster.delete(NODES, "a");
      await world.addNode("a");
      await world.served(["a"]);
      world.cluster.clock.skip(3_600_000);
      await world.deleteNode("a");
      for (let n = 0; n < 5; n++) {
        world.cluster.clock.skip(5_000);
        await pause(200);
        assert.equal((await world.cluster.store.get("block", "10.244.0.0/24"))?.record.releasedAt, undefined);
      }
      await eventually("its grace is over", async () => {
        world.cluster.clock.skip(5_000);
        return (await world.cluster.all("block")).length === 0 ? true : undefined;
      });
    });

    it("are one for each Node when two controllers give them at once", async () => {
      await world.applyPool("all", ["10.244.0.0/18"]);
      world.start();
      world.start();
      const names = Array.from({ length: 40 }, (_, n) => `n${n}`);
      await Promise.all(names.map((name) => world.addNode(name)));
      await world.served(names);
      await world.assertDisjoint();
      await eventually("one record for each", async () => {
        world.cluster.clock.skip(1_000);
        return (await world.cluster.all("block")).length === names.length ? true : undefined;
      });
    });

    const dyingOnce = async (name: string, when: "before" | "after", at: number | "Node") => {
      const store = new FailingStore(world.cluster.store, at === "Node" ? 0 : at, when);
      const dying = dyingAt(world.account, at === "Node" ? 1 : 0, when);
      const context = { ...world.cluster.context, clock: world.cluster.clock, store };
      const first = world.start({ context, connection: dying, nodeCIDRs: BOTH });
      await world.addNode(name);
      await eventually("it has died", () => (store.died || dying.patches > 0 ? true : undefined));
      await first.close();
      const second = world.start({ nodeCIDRs: BOTH });
      await world.served([name], 2);
      await second.close();
    };

    it("are gone on with when the controller dies before or after any of its writes", async (t) => {
      await world.applyPool("all", ["10.244.0.0/18"]);
      await world.applyPool("six", ["fd00:10::/48"]);
      const writes = [1, 2, 3, 4, "Node"] as const; // of two records, each made and then granted
      for (const { failure, at } of drawn(t, deathsAt(writes), 3))
        await dyingOnce(`${failure}-${at}`.toLowerCase(), failure, at);
      await world.assertDisjoint();
      const owners = (await world.cluster.all("block")).map(({ record }) => record.node);
      assert.equal(owners.length, 2 * new Set(owners).size);
    });

    const dyingAsItTakesBack = async (when: "before" | "after", at: number) => {
      const name = `gone-${when}-${at}`;
      const serving = world.start();
      await world.addNode(name);
      await world.served([name]);
      await serving.close();
      await world.deleteNode(name);
      const store = new FailingStore(world.cluster.store, at, when);
      const first = world.start({ context: { ...world.cluster.context, clock: world.cluster.clock, store } });
      await eventually("it has died", () => {
        world.cluster.clock.skip(5_000);
        return store.died ? true : undefined;
      });
      await first.close();
      const second = world.start();
      await eventually("it is nobody's", async () => {
        world.cluster.clock.skip(5_000);
        return (await world.cluster.all("block")).length === 0 ? true : undefined;
      });
      await second.close();
    };

    it("come back all the same when the controller dies before or after any write of that", async (t) => {
      await world.applyPool("all", ["10.244.0.0/24"]); // one: whoever is next has what the last one had
      const writes = [1, 2]; // it cools, and it is free
      for (const { failure, at } of drawn(t, deathsAt(writes), 2)) await dyingAsItTakesBack(failure, at);
    });

    it("were given with the rights of the chart, none of which was of no use", () => {
      assert.deepEqual(world.account.forbidden, []);
      for (const right of rightsOf("berth-webhook", nodesRole()))
        assert.ok(world.account.used.has(right), right);
    });

    it("are of a pool that never changes its size, and stays as long as nodes have some", async () => {
      await world.applyPool("all", ["10.244.0.0/22"]);
      const spec = { nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: 25 } } };
      const answer = await world.cluster.connection.call(merge(itemPath(POOLS, { name: "all" }), { spec }));
      assert.equal(answer.status, 422, JSON.stringify(answer.body));
      world.start();
      world.cluster.start(startPools);
      await world.addNode("a");
      await world.served(["a"]);
      await eventually("it is kept", async () => {
        const pool = await new Client(world.cluster.connection, POOLS).get({ name: "all" });
        return (pool?.metadata.finalizers ?? []).length > 0 ? true : undefined;
      });
    });
  });
}
