// SPDX-License-Identifier: Apache-2.0
// Berth and Cilium's own code of an agent's addresses: 110 pods on each of three nodes, which come and go, in each mode. It needs what
// test/cilium/build.sh builds, and is left out where that is not there.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import type { Family } from "../../allocator/ip/address.ts";
import { Client } from "../../kube/api/client.ts";
import { resource } from "../../kube/api/resource.ts";
import type { CiliumMode } from "../../webhook/controllers/cilium/cilium-node.ts";
import { CILIUM, ciliumDefinitions } from "../cilium/definitions.ts";
import { Driver, driverFile, startOperator } from "../cilium/driver.ts";
import { eventually } from "../support/eventually.ts";
import { runsOf } from "../support/runs.ts";
import { skipped } from "../support/skipped.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CiliumCluster, liesIn } from "./cilium-cluster.ts";

const NODES = [
  ["n1", "a"],
  ["n2", "a"],
  ["n3", "b"],
] as const;
const PODS = 110;
/** Cilium's code of mode multi-pool looks once a minute, by a clock of its own, what it can give back. */
const PATIENCE_MS = 240_000;
/** CIDRs of a node with 5 pods in one of them; an agent of mode multi-pool keeps what it has allocated before besides. */
const MOST_LEFT: Readonly<Record<CiliumMode, number>> = { crd: 1, "cluster-pool": 1, "multi-pool": 2 };
const POD_POOLS = resource("cilium.io/v2alpha1", "CiliumPodIPPool", "ciliumpodippools", "cluster");

const isSix = (address: string) => address.includes(":");

const file = driverFile();
const hasParts = havePartsOrSkip(["etcd", "kube-apiserver"]);
const definitions = hasParts && file !== undefined ? await ciliumDefinitions(CILIUM) : undefined;
if (file === undefined || definitions === undefined)
  skipped("no agent of Cilium's; test/cilium/build.sh builds it");
else {
  describe(`Cilium's own code of ${CILIUM}`, () => {
    let world: CiliumCluster;
    const drivers = new Map<string, Driver>();
    before(async () => {
      world = await CiliumCluster.open(definitions);
    });
    after(() => world?.close());
    afterEach(async () => {
      for (const driver of drivers.values()) await driver.kill();
      drivers.clear();
      othersGive = false;
      await world.clear();
    });

    let othersGive = false;
    /** Time passes for Berth, and what must hold holds. */
    const look = async () => {
      world.cluster.clock.skip(2_000);
      await world.witness({ othersGive });
    };
    const boot = async (
      node: string,
      mode: CiliumMode,
      about: { readonly restored?: readonly string[]; readonly families?: readonly Family[] } = {},
    ) => {
      const { restored = [], families = ["IPv4"] } = about;
      const driver = Driver.start(world.cluster.plane, file, { node, mode, families });
      drivers.set(node, driver);
      await driver.begin(restored);
      world.watch(driver);
      return driver;
    };
    let count = 0;
    /** So many pods of the node have addresses, as soon as there are enough. */
    const fill = async (driver: Driver, pods: number) => {
      await eventually(
        `${pods} pods of ${driver.node}`,
        async () => {
          while (driver.used.size < pods) {
            if ((await driver.add(`pod-${++count}`)) !== undefined) continue;
            await look();
            return undefined;
          }
          return true;
        },
        PATIENCE_MS,
      );
    };
    const empty = async (driver: Driver, left: number) => {
      for (const address of [...driver.used].slice(left)) await driver.del(address);
    };
    /** Those that stay share a CIDR: the agent picks at random, and five that lie in as many CIDRs would hold all of them. */
    const emptyToOneBlock = async (driver: Driver, left: number) => {
      const [fullest] = (await world.cidrs(driver.node))
        .map((cidr) => [...driver.used].filter((address) => liesIn(address, cidr)))
        .toSorted((a, b) => b.length - a.length);
      assert.ok(fullest !== undefined && fullest.length >= left, `${driver.node} has ${fullest?.length}`);
      const stay = new Set(fullest.slice(0, left));
      for (const address of [...driver.used]) if (!stay.has(address)) await driver.del(address);
    };

    /** Of mode multi-pool: an agent asks only for a pool that it knows. */
    const makePodPool = async (cidrs: readonly string[], maskSize: number, six: readonly string[] = []) => {
      const podPools = new Client(world.cluster.connection, POD_POOLS);
      const place = { name: "default" };
      const before = await podPools.get(place);
      if (before !== undefined) await podPools.remove(place, before.metadata);
      const ipv4 = cidrs.length > 0 ? { ipv4: { cidrs, maskSize } } : {};
      const ipv6 = six.length > 0 ? { ipv6: { cidrs: six, maskSize: 124 } } : {};
      await podPools.create(place, { spec: { ...ipv4, ...ipv6 } });
    };

    /** Two pools that are far from each other for zone a, one for zone b. */
    const prepare = async (mode: CiliumMode) => {
      const nodeCIDRs = { use: "Cilium", blockSize: { ipv4: mode === "cluster-pool" ? 25 : 27 } };
      const zone = (name: string) => ({ nodeCIDRs, nodeSelector: { matchLabels: { zone: name } } });
      const [a, b] = [["10.10.0.0/23", "20.216.255.0/24"], ["192.168.7.0/24"]];
      await world.addPool("a", a, zone("a"));
      await world.addPool("b", b, zone("b"));
      await makePodPool([...a, ...b], 27);
      world.operate(mode);
      for (const [name, zoneName] of NODES) await world.addNode(name, zoneName);
    };
    const comeAndGo = async () => {
      for (let round = 0; round < runsOf(4, 2); round++) {
        for (const driver of drivers.values()) await fill(driver, PODS);
        await look();
        for (const driver of drivers.values()) await empty(driver, 10 * round);
        await look();
      }
    };
    const settle = async (most: number) => {
      let left: readonly (readonly string[])[] = [];
      const isSettled = async () => {
        await look();
        left = await Promise.all(NODES.map(([name]) => world.cidrs(name)));
        return left.every((own) => own.length <= most) || undefined;
      };
      await eventually("what is not used is given back", isSettled, PATIENCE_MS).catch((error: unknown) => {
        const used = [...drivers.values()].map((driver) => [...driver.used]);
        throw new Error(`the nodes have ${JSON.stringify({ left, used })}`, { cause: error });
      });
    };

    const isRecorded = async (name: string) => {
      await look();
      const { podCIDRs = [], pools } = (await world.object(name))?.spec.ipam ?? {};
      const has = [...podCIDRs, ...(pools?.allocated ?? []).flatMap((one) => one.cidrs)];
      const own = await world.cidrs(name);
      const used = [...(drivers.get(name)?.used ?? [])];
      const isWhole = used.every((address) => has.some((cidr) => liesIn(address, cidr)));
      return (has.length > 0 && isWhole && has.every((cidr) => own.includes(cidr))) || undefined;
    };

    // one after the other: of two at the same moment that operator may give to one what Berth has just given to the other (docs/cilium.md)
    for (const mode of ["cluster-pool", "multi-pool"] as const)
      it(`records as a node's what Cilium's operator gives it beside Berth, of the same range, in mode ${mode}`, async () => {
        othersGive = true;
        const cidrs = ["10.10.0.0/24"];
        await makePodPool(cidrs, 28);
        await world.addPool("a", cidrs);
        const operator = startOperator(world.cluster.plane, file, { mode, cidrs });
        try {
          world.operate(mode);
          for (const [name, zone] of NODES) {
            await world.addNode(name, zone);
            await fill(await boot(name, mode), 12);
            await eventually(`what ${name} has is recorded`, () => isRecorded(name));
          }
        } finally {
          await operator.end();
        }
      });

    it("says of which nodes Cilium's operator gives CIDRs beside it that are of no pool", async () => {
      // nobody but that operator has CIDRs to give to the first nodes
      await world.addPool("b", ["192.168.7.0/24"], { nodeSelector: { matchLabels: { zone: "b" } } });
      const cidrs = ["10.99.0.0/24"];
      const operator = startOperator(world.cluster.plane, file, { mode: "cluster-pool", cidrs });
      try {
        world.operate("cluster-pool");
        await world.addNode("n1", "b");
        await world.write("n2", {});
        await world.addNode("n2", "a");
        const notice = await eventually("it is told", async () => {
          await look();
          return world.cluster.notices.all.find(({ reason }) => reason === "CiliumCIDRForeign");
        });
        assert.match(
          notice.note,
          /^10\.99\.0\.\d+\/28 in its CiliumNode is of no IPPool for Cilium: Cilium's operator, or somebody else, gives CIDRs too, /,
        );
      } finally {
        await operator.end();
      }
    });

    const TWO = ["n1", "n2"];
    /** A pool of each family, whose two ranges are apart, and two nodes. */
    const prepareSix = async (mode: CiliumMode, families: readonly Family[]) => {
      const six = ["fd00:10::/121", "fd00:20::/121"];
      const four = families.includes("IPv4") ? ["10.10.0.0/25", "20.216.255.0/25"] : [];
      const blockSize = { ipv6: 124, ...(four.length === 0 ? {} : { ipv4: 28 }) };
      await world.addPool("all", [...four, ...six], { nodeCIDRs: { use: "Cilium", blockSize } });
      await makePodPool(four, 28, six);
      world.operate(mode);
      for (const name of TWO) await world.addNode(name, "a");
      return await Promise.all(TWO.map((name) => boot(name, mode, { families })));
    };
    /** By the handshake, which Cilium's own operator has for IPv4 only. */
    const isGivenBack = async (families: readonly Family[]) => {
      await look();
      const left = await Promise.all(TWO.map((name) => world.cidrs(name)));
      return left.every((cidrs) => cidrs.length === families.length) || undefined;
    };
    const servesSix = async (mode: CiliumMode, families: readonly Family[]) => {
      const nodes = await prepareSix(mode, families);
      const pods = mode === "cluster-pool" ? 12 : 40;
      const fillAll = () => Promise.all(nodes.map((node) => fill(node, pods * families.length)));
      const emptyAll = (left: number) => Promise.all(nodes.map((node) => empty(node, left)));
      await fillAll();
      for (const { used } of nodes) assert.equal([...used].filter(isSix).length, pods);
      await emptyAll(10);
      await fillAll();
      await emptyAll(0);
      if (mode === "crd") await eventually("it is given back", () => isGivenBack(families));
    };
    for (const families of [["IPv6"], ["IPv4", "IPv6"]] as const)
      for (const mode of ["crd", "cluster-pool", "multi-pool"] as const)
        it(`has addresses of ${families.join(" and ")} for each pod, from ranges that are apart, in mode ${mode}`, () =>
          servesSix(mode, families));

    for (const mode of ["crd", "cluster-pool", "multi-pool"] as const)
      it(`has an address for each of ${PODS} pods on each node in mode ${mode}`, async () => {
        await prepare(mode);
        await Promise.all(NODES.map(([name]) => boot(name, mode)));
        await comeAndGo();
        // an agent that is upgraded finds its pods' addresses again
        const one = drivers.get("n1");
        assert.ok(one);
        await fill(one, 40);
        await one.kill();
        await fill(await boot("n1", mode, { restored: [...one.used] }), 60);
        for (const driver of drivers.values()) await fill(driver, PODS);
        for (const driver of drivers.values()) await emptyToOneBlock(driver, 5);
        await settle(MOST_LEFT[mode]);
        for (const driver of drivers.values()) await fill(driver, PODS);
        await look();
      });
  });
}
