// SPDX-License-Identifier: Apache-2.0
// What Berth writes into CiliumNodes, finds in them, and leaves there, with Cilium's definitions of several versions.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { POOLS } from "../../kube/api/resource.ts";
import { CILIUM, CILIUM_BEFORE, CILIUM_GROWING, ciliumDefinitions } from "../cilium/definitions.ts";
import { exposed } from "../support/exposed.ts";
import { deathsAt, drawn } from "../support/runs.ts";
import { skipped } from "../support/skipped.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CiliumCluster, liesIn } from "./cilium-cluster.ts";
import { CiliumNodes, KINDS, ZONES } from "./cilium-nodes.ts";

const definitions = havePartsOrSkip(["etcd", "kube-apiserver"]) ? await ciliumDefinitions(CILIUM) : undefined;

if (definitions === undefined) skipped("no API server, or no Go to take Cilium's definitions from");
else {
  describe("CiliumNodes on a real API server", () => {
    let world: CiliumCluster;
    let nodes: CiliumNodes;
    before(async () => {
      world = await CiliumCluster.open(definitions);
      nodes = new CiliumNodes(world, world.connection);
    });
    after(() => world?.close());
    afterEach(() => world.clear());

    it("makes the object that nobody else makes, with addresses and CIDRs of pools that are apart", async () => {
      await world.addPool("one", ["20.216.255.0/27"], { cilium: { growBelow: 20 } });
      await world.addPool("two", ["30.216.255.0/27"]);
      world.operate("crd");
      await world.addNode("n1", "a");
      await world.until("it has both", async () => {
        const ipam = (await world.object("n1"))?.spec.ipam;
        return (ipam?.podCIDRs?.length ?? 0) === 2 && Object.keys(ipam?.pool ?? {}).length === 32;
      });
      await nodes.join("n2", "a", KINDS.crd);
      const some = await world.grow("n2", 12);
      const { podCIDRs = [], pool = {} } = (await world.object("n2"))?.spec.ipam ?? {};
      // in the order in which they were granted, at once
      assert.deepEqual(podCIDRs.toSorted(), ["30.216.255.0/28", "30.216.255.16/28"]);
      assert.ok(Object.keys(pool).every((ip) => liesIn(ip, "30.216.255.0/27")));
      // the marks of the pool that selects the node first count, and may be changed
      await world.cluster.patch(POOLS, "one", { spec: { cilium: { growBelow: 8, shrinkAbove: 10 } } });
      await world.until("the agent was asked for what it does not use", async () => {
        if (world.agents.get("n2")?.used.size !== 0) world.shrink("n2", some);
        const seen = (await world.object("n2"))?.status?.ipam?.["release-ips"] ?? {};
        return Object.keys(seen).length > 0 || (await world.cidrs("n2")).length < 2;
      });
    });

    it("gives a node one CIDR of a family in mode cluster-pool, for as long as it is there", async () => {
      await nodes.addPools();
      world.operate("cluster-pool");
      await nodes.joinAll(KINDS["cluster-pool"]);
      for (const [name] of ZONES) await world.grow(name, 14);
      assert.equal(world.agents.get("n1")?.add(), undefined, "a node got a second CIDR of a family");
      for (const [name] of ZONES) assert.equal((await world.cidrs(name)).length, 1);
      await world.deleteNode("n1");
      await world.until("its CIDR is back", async () => (await world.cidrs("n1")).length === 0);
      await nodes.join("n1", "a", KINDS["cluster-pool"]);
      await world.grow("n1", 14);
    });

    it("goes on with a node of mode cluster-pool when it dies before or after any write of that node's life", async (t) => {
      await nodes.addPools();
      // the object, the record, its grant, the list; and once the node is gone: the recall, the end, the end of the cooldown
      for (const { failure, at } of drawn(t, deathsAt([1, 2, 3, 4, 5, 6, 7]), 4))
        assert.ok(await nodes.dieInLife(KINDS["cluster-pool"], at, failure), `there is no write ${at}`);
      for (const node of world.agents.keys()) assert.equal((await world.cidrs(node)).length, 1);
    });

    it("leaves a node all of its podCIDRs, from pools that are apart, and gives no more of a family than its agent says it uses", async () => {
      await world.addPool("a", ["10.10.0.0/28", "20.216.255.0/27"]);
      const podCIDRs = ["20.216.255.0/28", "10.10.0.0/28"];
      await world.write("n1", { podCIDRs });
      world.operate("cluster-pool");
      await nodes.join("n1", "a", KINDS["cluster-pool"]);
      await world.until("both are recorded", async () => (await world.cidrs("n1")).length === 2);
      await nodes.join("n2", "b", KINDS["cluster-pool"]);
      const got = await world.grow("n1", 14);
      assert.ok(got.every((address) => liesIn(address, "20.216.255.0/28")));
      assert.ok((await world.grow("n2", 14)).every((address) => liesIn(address, "20.216.255.16/28")));
      for (let n = 0; n < 30; n++) await world.step(); // a minute, in which no agent says that it has used any up
      assert.deepEqual((await world.object("n1"))?.spec.ipam?.podCIDRs, podCIDRs);
      assert.deepEqual((await world.cidrs("n1")).toSorted(), podCIDRs.toSorted());
      // and all of them come back with the node
      await world.deleteNode("n1");
      await world.until("they are back", async () => (await world.cidrs("n1")).length === 0);
      await nodes.join("n3", "a", KINDS["cluster-pool"]);
      await world.grow("n3", 14);
    });

    it("gives a node of mode cluster-pool that says what it uses CIDRs of pools that are apart, one after the other", async () => {
      await world.addPool("one", ["10.10.0.0/28"]);
      await world.addPool("two", ["20.216.255.0/28", "30.216.255.0/28"]);
      world.operate("cluster-pool");
      await nodes.join("n1", "a", KINDS["cluster-pool-v2beta"]);
      const used = await world.grow("n1", 42);
      const all = ["10.10.0.0/28", "20.216.255.0/28", "30.216.255.0/28"];
      assert.deepEqual((await world.object("n1"))?.spec.ipam?.podCIDRs?.toSorted(), all);
      world.shrink("n1", used.slice(5));
      // 9 addresses of the first are free, and 14 of the second: without them fewer than 16 would be
      await world.until("one is back", async () => (await world.cidrs("n1")).length === 2);
      await nodes.join("n2", "a", KINDS["cluster-pool-v2beta"]);
      await world.grow("n2", 14);
    });

    it("takes over what nodes have, and says which of two has what both say", async () => {
      await nodes.addPools();
      for (const [name, zone] of ZONES) await world.addNode(name, zone);
      await world.write("n1", { podCIDRs: ["10.10.0.16/28"] });
      await world.write("n2", { podCIDRs: ["20.216.255.32/28"] });
      await world.write("n3", { podCIDRs: ["10.10.0.16/28"] });
      const { metrics, of } = exposed();
      world.operate("cluster-pool", world.connection, { metrics });
      const errorOf = async (name: string) =>
        (await world.object(name))?.status?.ipam?.["operator-status"]?.error ?? "";
      const isTold = async () => (await errorOf("n3")) !== "" || (await errorOf("n1")) !== "";
      await world.until("they are recorded", isTold, { mayOverlap: true });
      assert.deepEqual(await world.cidrs("n2"), ["20.216.255.32/28"]);
      const owners = await Promise.all(["n1", "n3"].map((name) => world.cidrs(name)));
      const [owner, other] = owners[0]?.length === 1 ? ["n1", "n3"] : ["n3", "n1"];
      assert.match(
        await errorOf(other),
        new RegExp(`10\\.10\\.0\\.16/28 is in this CiliumNode, and 10\\.10\\.0\\.16/28 is node ${owner}'s`),
      );
      assert.deepEqual(await of("berth_cilium_shared_nodes"), ["1"]);
      await world.deleteNode(other);
      const isOver = async () => (await of("berth_cilium_shared_nodes"))[0] === "0";
      await world.until("it is over", isOver, { mayOverlap: true });
    });

    for (const mode of ["crd", "cluster-pool"] as const)
      it(`tells of a node that no pool selects, as an event and as a metric, until one does, in mode ${mode}`, async () => {
        await nodes.addPools();
        await world.addNode("n1", "nowhere");
        await world.write("n1", {});
        const { metrics, of } = exposed();
        world.operate(mode, world.connection, { metrics });
        await world.until("it is counted", async () => (await of("berth_cilium_short_nodes"))[0] === "1");
        const reported = world.cluster.notices.all.find(({ reason }) => reason === "NoCiliumCIDR");
        assert.match(reported?.note ?? "", /^no pool with nodeCIDRs of use Cilium gives this node addresses/);
        await world.addPool("any", ["10.99.0.0/24"]);
        await world.until("it is over", async () => (await of("berth_cilium_short_nodes"))[0] === "0");
        assert.equal((await world.cidrs("n1")).length, 1);
      });

    it("tells of CIDRs that are of no pool, as an event and as a metric, until they are gone", async () => {
      await nodes.addPools();
      await world.addNode("n1", "a");
      await world.write("n1", { podCIDRs: ["10.99.0.0/28"] });
      const { metrics, of } = exposed();
      world.operate("cluster-pool", world.connection, { metrics });
      await world.until("it is counted", async () => (await of("berth_cilium_foreign_nodes"))[0] === "1");
      const reported = world.cluster.notices.all.find(({ reason }) => reason === "CiliumCIDRForeign");
      assert.match(reported?.note ?? "", /^10\.99\.0\.0\/28 in its CiliumNode is of no IPPool for Cilium: /);
      // a pool that has it: what the node has is recorded
      await world.addPool("late", ["10.99.0.0/24"]);
      await world.until("it is over", async () => (await of("berth_cilium_foreign_nodes"))[0] === "0");
      await world.until("it is recorded", async () => (await world.cidrs("n1")).includes("10.99.0.0/28"));
    });

    for (const mode of ["crd", "multi-pool"] as const)
      it(`takes nothing away on the word of an agent that has said nothing for minutes, in mode ${mode}`, async () => {
        await world.addPool("all", ["10.10.0.0/24"]);
        world.operate(mode);
        await nodes.join("n1", "a", KINDS[mode]);
        world.shrink("n1", await world.grow("n1", 30));
        await world.step(); // by its last word nothing is used
        const agent = world.agents.get("n1");
        assert.ok(agent);
        world.agents.delete("n1");
        world.watch(agent);
        while (agent.add() !== undefined);
        const used = [...agent.used];
        for (let n = 0; n < 10; n++) {
          world.cluster.clock.skip(20_000);
          await world.step();
        }
        await world.until("it goes on, and 10 pods more have addresses", async () => {
          await agent.sync();
          await agent.report();
          while (agent.used.size < used.length + 10) if (agent.add() === undefined) return false;
          return true;
        });
        assert.ok(used.every((address) => agent.used.has(address)));
      });

    for (const mode of ["crd", "cluster-pool", "multi-pool"] as const)
      it(`gives nodes CIDRs of both families, from several ranges, in mode ${mode}`, () =>
        servesBoth(world, mode));
  });

  const SIX = { nodeCIDRs: { use: "Cilium", blockSize: { ipv6: 124 } } };
  /** Of both families, each of a pool of its own, whose two ranges are apart: a CIDR in each. */
  const servesBoth = async (world: CiliumCluster, mode: "crd" | "cluster-pool" | "multi-pool") => {
    await world.addPool("four", ["10.10.0.0/28", "20.10.0.0/28"]);
    await world.addPool("six", ["fd00:10::/124", "fd00:20::/124"], SIX);
    world.operate(mode);
    for (const name of ["n1", "n2"]) {
      await world.addNode(name, "a");
      // as an agent of multi-pool asks
      const requested = [{ pool: "default", needed: { "ipv4-addrs": 8, "ipv6-addrs": 8 } }];
      if (mode === "multi-pool") await world.request(name, requested);
    }
    const has = async (name: string): Promise<readonly string[]> => {
      const { pool = {}, podCIDRs = [], pools } = (await world.object(name))?.spec.ipam ?? {};
      return [...Object.keys(pool), ...podCIDRs, ...(pools?.allocated ?? []).flatMap(({ cidrs }) => cidrs)];
    };
    await world.until("both have both", async () => {
      const all = await Promise.all(["n1", "n2"].map(has));
      return all.every((own) => [":", "."].every((mark) => own.some((text) => text.includes(mark))));
    });
    const cidrs = (await Promise.all(["n1", "n2"].map((name) => world.cidrs(name)))).flat().toSorted();
    assert.deepEqual(new Set(cidrs).size, cidrs.length);
    for (const range of [/^10\.10\./, /^20\.10\./, /^fd00:10::\/124$/, /^fd00:20::\/124$/])
      assert.ok(
        cidrs.some((cidr) => range.test(cidr)),
        `${range} in ${cidrs.join()}`,
      );
  };
  const growing = await ciliumDefinitions(CILIUM_GROWING);
  describe(`Cilium's nodes with the definitions of ${CILIUM_GROWING}`, {
    skip: growing === undefined,
  }, () => {
    let world: CiliumCluster;
    before(async () => {
      world = await CiliumCluster.open(growing ?? []);
    });
    after(() => world?.close());

    it("grow and shrink in mode cluster-pool by the marks of their pool, which may be changed", async () => {
      await world.addPool("all", ["10.10.0.0/24"], { cilium: { growBelow: 3, shrinkAbove: 30 } });
      world.operate("cluster-pool");
      const nodes = new CiliumNodes(world, world.connection);
      await nodes.join("n1", "a", KINDS["cluster-pool-v2beta"]);
      await world.grow("n1", 11);
      for (let n = 0; n < 20; n++) await world.step();
      assert.equal((await world.cidrs("n1")).length, 1, "3 of 14 are left");
      await world.grow("n1", 1);
      await world.until("it has grown", async () => (await world.cidrs("n1")).length === 2);
      await world.cluster.patch(POOLS, "all", { spec: { cilium: { growBelow: 18, shrinkAbove: 40 } } });
      await world.until("it has grown more", async () => (await world.cidrs("n1")).length === 3);
      await world.cluster.patch(POOLS, "all", { spec: { cilium: { growBelow: 3, shrinkAbove: 14 } } });
      await world.until("it has given one back", async () => (await world.cidrs("n1")).length === 2);
    });
  });

  const before115 = await ciliumDefinitions(CILIUM_BEFORE);
  describe(`Cilium's nodes with the definitions of ${CILIUM_BEFORE}`, {
    skip: before115 === undefined,
  }, () => {
    let world: CiliumCluster;
    before(async () => {
      world = await CiliumCluster.open(before115 ?? []);
    });
    after(() => world?.close());
    afterEach(() => world.clear());
    for (const mode of ["crd", "cluster-pool", "multi-pool"] as const)
      it(`gives nodes CIDRs of both families, from several ranges, in mode ${mode}`, () =>
        servesBoth(world, mode));
    for (const mode of ["crd", "cluster-pool", "multi-pool"] as const)
      it(`serves pods in mode ${mode}`, async () => {
        await world.addPool("all", ["10.10.0.0/24"]);
        world.operate(mode);
        await world.addNode("n1", "a");
        const agent = new KINDS[mode].Agent(world.cluster.connection, "n1");
        world.agents.set("n1", agent);
        await world.grow("n1", 12);
      });
  });
}
