// SPDX-License-Identifier: Apache-2.0
// Blocks of every size, in both families, and nodes that are in several pools: real agents and controllers on a real API server.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { familyOf, parseAddress, parseCidr, toNumber } from "../../allocator/ip/address.ts";
import { contains, fullInterval } from "../../allocator/ip/ip-range.ts";
import { NODES } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster, type Box } from "./block-cluster.ts";
import { change } from "./replica-objects.ts";

const ZONE = "topology.kubernetes.io/zone";
const inZone = (zone: string) => ({ nodeSelector: { matchLabels: { [ZONE]: zone } } });
const COOLDOWN = { cooldown: "1s" };

const plain = (address: string) => address.split("/")[0] ?? "";

function isIn(cidr: string, address: string): boolean {
  const [network, parsed] = [parseCidr(cidr), parseAddress(plain(address))];
  assert.ok(network !== undefined && parsed !== undefined, `${cidr} ${address}`);
  return network.family === familyOf(parsed) && contains(fullInterval(network), toNumber(parsed));
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("blocks of every size", () => {
    let cluster: BlockCluster;
    before(async () => {
      cluster = await BlockCluster.open();
      for (const [name, zone] of [
        ["n1", "beijing"],
        ["n2", "shanghai"],
      ] as const)
        await change(cluster.api, NODES, { name }, { metadata: { labels: { [ZONE]: zone } } });
    });
    after(() => cluster?.close());
    afterEach(() => cluster.clear());

    const lengthOf = ({ key }: { readonly key: string }) => Number(key.split("/")[1]);

    /** Each address lies in a block of its sandbox's node, and of one such pool. */
    async function areOfTheirNodes(boxes: readonly Box[], pools: readonly string[]): Promise<void> {
      const blocks = await cluster.blocks();
      for (const { pod, addresses } of boxes)
        for (const address of addresses) {
          // a single address that its node has lies within a block that was another one's
          const around = blocks
            .filter(({ key }) => isIn(key, address))
            .sort((a, b) => lengthOf(b) - lengthOf(a));
          const [{ record } = assert.fail(`${address} is in no block`)] = around;
          assert.equal(record.node, pod.node.name, address);
          assert.ok(pools.includes(record.pool), `${address} is of ${record.pool}`);
        }
    }

    /** The prefix lengths of all blocks that the node has of the pool, each once. */
    async function lengthsOf(pool: string, node: string): Promise<readonly number[]> {
      const own = (await cluster.blocks()).filter(
        ({ record }) => record.pool === pool && record.node === node,
      );
      return [...new Set(own.map(({ key }) => Number(key.split("/")[1])))].sort();
    }

    it("of /122 of an IPv6 /64 serve beside IPv4 blocks of /30, of which a node has several", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      const ranges = [{ cidr: "10.30.0.0/24" }, { cidr: "fd00:30::/64" }];
      await cluster.makePool("dual", {
        ranges,
        blockSize: { ipv4: 30, ipv6: 122 },
        default: true,
        ...COOLDOWN,
      });
      const boxes = (await Promise.all([cluster.upAll(n1, 20), cluster.upAll(n2, 20)])).flat();
      for (const { addresses } of boxes) {
        assert.deepEqual(
          addresses.map((one) => isIn("10.30.0.0/24", one)),
          [true, false],
        );
        assert.ok(isIn("fd00:30::/64", addresses[1] ?? ""));
      }
      await areOfTheirNodes(boxes, ["dual"]);
      assert.deepEqual(await lengthsOf("dual", "n1"), [122, 30]);
      const fours = (await cluster.blocks()).filter(
        ({ key, record }) => record.node === "n1" && key.endsWith("/30"),
      );
      assert.ok(fours.length >= 5, `${fours.length} blocks`);
    });

    for (const length of [30, 31, 32])
      it(`of /${length} of a /28 serve one node with all 14 addresses, then the other one`, async () => {
        const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
        const ranges = [{ cidr: `10.31.${length}.0/28` }];
        await cluster.makePool("small", { ranges, blockSize: { ipv4: length }, default: true, ...COOLDOWN });
        const all = Array.from({ length: 14 }, (_, n) => n + 1);
        const lasts = () =>
          cluster
            .addresses()
            .map((one) => Number(plain(one).split(".")[3]))
            .toSorted((a, b) => a - b);
        const boxes = await cluster.upAll(n1, 14);
        assert.deepEqual(lasts(), all);
        await areOfTheirNodes(boxes, ["small"]);
        // a block that n2 had ahead is given address by address, where it was not back in time
        const lengths = await lengthsOf("small", "n1");
        assert.deepEqual(
          lengths.filter((one) => one !== 32 || one === length),
          [length],
        );
        for (const box of boxes) await cluster.down(box);
        await areOfTheirNodes(await cluster.upAll(n2, 14), ["small"]);
        assert.deepEqual(lasts(), all);
      });

    it("differ by node where a pool is for some nodes", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      const large = { ranges: [{ cidr: "10.33.0.0/20" }], blockSize: { ipv4: 26 }, ...inZone("beijing") };
      const small = { ranges: [{ cidr: "10.33.16.0/24" }], blockSize: { ipv4: 30 }, ...inZone("shanghai") };
      await cluster.makePool("large", { ...large, ...COOLDOWN });
      await cluster.makePool("small", { ...small, ...COOLDOWN });
      const [beijing, shanghai] = await Promise.all([cluster.upAll(n1, 12), cluster.upAll(n2, 12)]);
      await areOfTheirNodes(beijing, ["large"]);
      await areOfTheirNodes(shanghai, ["small"]);
      assert.deepEqual([await lengthsOf("large", "n1"), await lengthsOf("small", "n1")], [[26], []]);
      assert.deepEqual([await lengthsOf("large", "n2"), await lengthsOf("small", "n2")], [[], [30]]);
    });

    it("of two pools serve one node, in the order of their priority", async () => {
      const n1 = cluster.node("n1");
      const few = { ranges: [{ cidr: "10.34.0.0/29" }], blockSize: { ipv4: 30 }, priority: 10 };
      const many = { ranges: [{ cidr: "10.35.0.0/24" }], blockSize: { ipv4: 28 }, priority: 1 };
      await cluster.makePool("few", { ...few, ...inZone("beijing"), ...COOLDOWN });
      await cluster.makePool("many", { ...many, ...inZone("beijing"), ...COOLDOWN });
      // each needs blocks before a pod comes for which the pool before it has none at this moment
      await eventually("both have blocks here", async () => {
        const pools = (await cluster.blocks()).flatMap(({ record }) =>
          record.granted === true ? [record.pool] : [],
        );
        return (pools.filter((pool) => pool === "few").length === 2 && pools.includes("many")) || undefined;
      });
      const boxes = await cluster.upAll(n1, 10);
      await areOfTheirNodes(boxes, ["few", "many"]);
      const ofFew = boxes.filter(({ addresses }) => isIn("10.34.0.0/29", addresses[0] ?? ""));
      assert.equal(ofFew.length, 6);
    });

    it("give a pod both families of its node's zone, and never one of another zone", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      const dual = (n: number) => ({
        ranges: [
          { cidr: `10.${n}.0.0/24` },
          { cidr: `fd00:${n}::/64`, from: `fd00:${n}::10`, to: `fd00:${n}::13` },
        ],
        blockSize: { ipv4: 29, ipv6: 128 },
        ...COOLDOWN,
      });
      await cluster.makePool("beijing", { ...dual(36), ...inZone("beijing") });
      await cluster.makePool("shanghai", { ...dual(37), ...inZone("shanghai") });
      const [beijing, shanghai] = await Promise.all([cluster.upAll(n1, 4), cluster.upAll(n2, 3)]);
      await areOfTheirNodes(beijing, ["beijing"]);
      await areOfTheirNodes(shanghai, ["shanghai"]);
      const words = String(await cluster.tryUp(await cluster.pod(n1)));
      assert.match(words, /^11 .*IPv6.*pool "beijing"/);
      assert.doesNotMatch(words, /shanghai/);
    });
  });
}
