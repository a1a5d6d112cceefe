// SPDX-License-Identifier: Apache-2.0
// Blocks on a real API server: nodes get them and give them back, whoever controls, and whenever he dies.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { ownedIn } from "../../allocator/cache/block-index.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { parseCidr } from "../../allocator/ip/address.ts";
import { fullInterval } from "../../allocator/ip/ip-range.ts";
import { IN_USE } from "../../allocator/store/kubernetes/objects.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import { NODES, PODS, POOLS } from "../../kube/api/resource.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";
import { clusterStates } from "../../webhook/cluster-state/live-and-cached.ts";
import { startBlocks } from "../../webhook/controllers/blocks/controller.ts";
import { startPools } from "../../webhook/controllers/pools/controller.ts";
import { eventually } from "../support/eventually.ts";
import { FailingStore } from "../support/failing-store.ts";
import { deathsAt, drawn } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster, NAMESPACE } from "./controllers-cluster.ts";

type Json = Readonly<Record<string, unknown>>;

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("blocks on a real API server", () => {
    let cluster: ControllersCluster;
    before(async () => {
      cluster = await ControllersCluster.open();
    });
    after(() => cluster?.close());
    afterEach(async () => {
      await cluster.endAll();
      for (const block of await cluster.all("block")) await cluster.store.remove("block", block);
      for (const [name] of [...cluster.replica.watches.nodes.all()]) await cluster.delete(NODES, name);
      for (const { record } of await cluster.all("pool")) {
        await cluster.patch(POOLS, record.name, { metadata: { finalizers: null } });
        await cluster.delete(POOLS, record.name);
      }
      await eventually("nothing is left", async () => {
        const { cache, watches } = cluster.replica;
        return [...cache.blocks(), ...cache.poolRecords(), ...watches.nodes.all()].length === 0 || undefined;
      });
    });

    /** The controller of a replica with a view that several share, and a clock that leaps. */
    const start = (over: Partial<Context> = {}): Controller => {
      const { watches, connection } = cluster.replica;
      const inventory = clusterStates({ watches, connection, clock: cluster.clock });
      return cluster.start(startBlocks, {
        context: { ...cluster.context, clock: cluster.clock, ...over },
        inventory,
      });
    };

    const applyPool = async (name: string, spec: Json) => {
      await cluster.apply(POOLS, { metadata: { name }, spec });
      await eventually("the pool is seen", () => cluster.replica.cache.pool(name));
    };

    const addNode = async (name: string) => {
      await new Client(cluster.connection, NODES).create({ name }, {});
    };

    const addPods = async (node: string, count: number, prefix = node) => {
      const spec = { nodeName: node, containers: [{ name: "main", image: "registry.example/app:1" }] };
      for (let n = 0; n < count; n++)
        await new Client(cluster.connection, PODS).create(
          { namespace: NAMESPACE, name: `${prefix}-${n}` },
          { spec: { ...spec, automountServiceAccountToken: false } },
        );
    };

    const removePods = async (count: number, prefix: string) => {
      for (let n = 0; n < count; n++)
        await cluster.connection.call({
          method: "DELETE",
          path: `/api/v1/namespaces/${NAMESPACE}/pods/${prefix}-${n}`,
          body: { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 },
        });
    };

    /** node -> addresses that it may give, of blocks that do not overlap. */
    const shares = async (): Promise<Record<string, number>> => {
      const found: Record<string, number> = {};
      const owners = new Map<bigint, string>(); // address -> block
      for (const { key, record } of await cluster.all("block")) {
        const cidr = parseCidr(key);
        assert.ok(cidr);
        for (let n = fullInterval(cidr).first; n <= fullInterval(cidr).last; n++) {
          assert.equal(owners.get(n), undefined, `in ${owners.get(n)} and ${key}`);
          owners.set(n, key);
        }
        if (record.granted !== true || record.releasedAt !== undefined) continue;
        const size = ownedIn(record).intervals.reduce((sum, { first, last }) => sum + last - first + 1n, 0n);
        found[record.node] = (found[record.node] ?? 0) + Number(size);
      }
      return found;
    };

    /** What each node's agent does before it gives from a block. */
    const prove = async () => {
      for (const seen of await cluster.all("block")) {
        const { granted, status, node } = seen.record;
        if (granted === true && status === undefined)
          await cluster.store.reportBlock(seen, { node, used: 0 });
      }
    };

    const reach = async (wanted: Record<string, number>, skipMs = 0) => {
      let seen: Record<string, number> = {};
      try {
        await eventually("the shares", async () => {
          await prove();
          if (skipMs > 0) cluster.clock.skip(skipMs);
          seen = await shares();
          return JSON.stringify(Object.entries(seen).sort()) === JSON.stringify(Object.entries(wanted).sort())
            ? true
            : undefined;
        });
      } catch {
        assert.deepEqual(seen, wanted);
      }
    };

    const returnAll = async (which: (block: Stored<"block">) => boolean) => {
      for (const seen of (await cluster.all("block")).filter(which)) {
        const status = { node: seen.record.node, used: 0, returnedAt: Date.now() };
        const now = (await cluster.store.get("block", seen.key)) ?? seen;
        assert.equal((await cluster.store.reportBlock(now, status)).kind, "replaced");
      }
    };

    it("come two ahead of what each node's pods need, and more with more pods", async () => {
      start();
      await addNode("node-a");
      await addNode("node-b");
      await applyPool("web", { ranges: [{ cidr: "10.30.0.0/24" }], blockSize: { ipv4: 30 }, default: true });
      await reach({ "node-a": 8, "node-b": 8 });
      await addPods("node-a", 9);
      await reach({ "node-a": 20, "node-b": 8 });
      await removePods(9, "node-a");
    });

    it("go to a node that has none, when the one that was asked for them gives its word, and the pool's cooldown is over", async () => {
      start();
      await addNode("node-a");
      const range = { cidr: "10.30.0.0/24", from: "10.30.0.16", to: "10.30.0.23" };
      await addPods("node-a", 8);
      await applyPool("web", { ranges: [range], blockSize: { ipv4: 31 }, default: true, cooldown: "30s" });
      await reach({ "node-a": 8 });
      await removePods(6, "node-a");
      await addNode("node-b");
      await addPods("node-b", 3);
      const asked = await eventually("the least used are asked for", async () => {
        const found = (await cluster.all("block")).filter(({ record }) => record.recalledAt !== undefined);
        return found.length === 2 ? found : undefined;
      });
      assert.ok(asked.every(({ record }) => record.node === "node-a" && record.granted === true));
      await returnAll(({ record }) => record.recalledAt !== undefined);
      await reach({ "node-a": 4 });
      assert.equal((await cluster.all("block")).length, 4, "they cool");
      await reach({ "node-a": 4, "node-b": 4 }, 10_000);
      await removePods(8, "node-a");
      await removePods(3, "node-b");
    });

    it("are kept for a node that is silent, or made again within its grace, and go with one that is fenced or gone", async () => {
      start();
      for (const name of ["node-a", "node-b", "node-c"]) await addNode(name);
      await applyPool("web", { ranges: [{ cidr: "10.30.0.0/24" }], blockSize: { ipv4: 30 }, cooldown: "1s" });
      await reach({ "node-a": 8, "node-b": 8, "node-c": 8 });
      const before = (await cluster.all("block")).map(({ uid }) => uid).sort();
      await cluster.delete(NODES, "node-c");
      await eventually(
        "it is gone",
        () => cluster.replica.watches.nodes.get("node-c") === undefined || undefined,
      );
      cluster.clock.skip(20_000);
      await addNode("node-c");
      await eventually("it is there again", () => cluster.replica.watches.nodes.get("node-c"));
      cluster.clock.skip(3_600_000);
      await reach({ "node-a": 8, "node-b": 8, "node-c": 8 }, 5_000);
      assert.deepEqual((await cluster.all("block")).map(({ uid }) => uid).sort(), before);
      await cluster.patch(NODES, "node-b", {
        spec: { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] },
      });
      await cluster.delete(NODES, "node-c");
      await reach({ "node-a": 8 }, 10_000);
      await eventually("what cooled is gone", async () => {
        cluster.clock.skip(5_000);
        return (await cluster.all("block")).length === 2 ? true : undefined;
      });
    });

    it("are each one node's, whoever hands them out at once", async () => {
      for (let n = 0; n < 20; n++) await addNode(`node-${n}`);
      await applyPool("web", { ranges: [{ cidr: "10.30.0.0/20" }], blockSize: { ipv4: 29 } });
      for (let n = 0; n < 3; n++) start();
      await eventually("all have some", async () => {
        const found = Object.values(await shares());
        return found.length === 20 && found.every((size) => size >= 14) ? true : undefined;
      });
    });

    it("are handed out by the next replica, where one dies before or after one of its writes", async (t) => {
      const nodes = ["node-a", "node-b"];
      for (const name of nodes) await addNode(name);
      await applyPool("web", { ranges: [{ cidr: "10.30.0.0/24" }], blockSize: { ipv4: 30 } });
      for (const { failure, at } of drawn(t, deathsAt([1, 2, 3, 6]), 3)) {
        const store = new FailingStore(cluster.store, at, failure);
        const dying = start({ store });
        await eventually("it dies", () => store.died || undefined);
        await dying.close();
        const next = start();
        await reach({ "node-a": 8, "node-b": 8 });
        await next.close();
        for (const block of await cluster.all("block")) await cluster.store.remove("block", block);
        await cluster.caughtUp();
        await eventually(
          "the view has none",
          () => [...cluster.replica.cache.blocks()].length === 0 || undefined,
        );
      }
    });

    it("keep their pool until the last one is given back, and come back to it", async () => {
      const kept = { context: { ...cluster.context, clock: cluster.clock } };
      start();
      cluster.start(startPools, kept);
      await addNode("node-a");
      await applyPool("web", { ranges: [{ cidr: "10.30.0.0/24" }], blockSize: { ipv4: 30 }, cooldown: "1s" });
      await reach({ "node-a": 8 });
      const finalizers = async () => (await cluster.find(POOLS, "web"))?.metadata.finalizers;
      await eventually("the finalizer", async () => {
        cluster.clock.skip(1_000);
        return (await finalizers())?.includes(IN_USE) === true ? true : undefined;
      });
      await cluster.delete(POOLS, "web");
      await eventually("all are asked for", async () => {
        cluster.clock.skip(1_000);
        const blocks = await cluster.all("block");
        return blocks.every(({ record }) => record.recalledAt !== undefined) ? true : undefined;
      });
      assert.deepEqual(await finalizers(), [IN_USE]);
      await returnAll(() => true);
      await eventually("the pool is gone", async () => {
        cluster.clock.skip(5_000);
        return (await cluster.find(POOLS, "web")) === undefined || undefined;
      });
      assert.deepEqual(await cluster.all("block"), []);
    });
  });
}
