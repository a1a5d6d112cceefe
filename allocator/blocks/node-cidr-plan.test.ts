// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parsed, poolRecord } from "../../test/support/fixtures.ts";
import { type Cidr, type Family, parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { fullInterval, intersection } from "../ip/ip-range.ts";
import type { Block } from "../model/block.ts";
import { cutSpace } from "../pool/blocks.ts";
import { matches } from "../pool/label-selector.ts";
import { type Pool, unavailableByDefault } from "../pool/pool.ts";
import {
  type CidrNode,
  type CidrSnapshot,
  type NamedCidr,
  type NodeCidrPlan,
  planNodeCidrs,
} from "./node-cidr-plan.ts";

function nodesPool(name: string, cidr: string, length: number, spec: object = {}) {
  const blockSize = cidr.includes(":") ? { ipv6: length } : { ipv4: length };
  return parsed(poolRecord(name, cidr, { nodeCIDRs: { use: "PodCIDR", blockSize }, ...spec }));
}

function node(name: string, over: Partial<CidrNode> = {}): CidrNode {
  return { node: name, nodeUID: `uid-${name}`, labels: {}, wants: { IPv4: 1 }, ...over };
}

function block(cidr: string, owner: string, over: Partial<Block> = {}): Block {
  const fixed = { use: "PodCIDR", holes: [], granted: true } as const;
  return { cidr, pool: "all", node: owner, nodeUID: `uid-${owner}`, ...fixed, ...over };
}

function network(text: string): Cidr {
  return parseCidr(text) ?? assert.fail(text);
}

function named(text: string): NamedCidr {
  return { node: "z", cidr: network(text) };
}

function snapshot(over: Partial<CidrSnapshot>): CidrSnapshot {
  const { blocks = [] } = over;
  return {
    use: "PodCIDR",
    pools: [nodesPool("all", "10.244.0.0/22", 24)],
    nodes: [],
    blocks,
    unpickable: (pool, family) => {
      const set = unavailableByDefault(pool, family);
      for (const one of blocks)
        if (one.pool === pool.name && network(one.cidr).family === family)
          set.addInterval(fullInterval(network(one.cidr)));
      return set;
    },
    inUse: [],
    ...over,
  };
}

const granted = ({ grants }: NodeCidrPlan) =>
  grants
    .flatMap(({ pool, requests }) => requests.map((one) => `${one.node} ${pool.name} ${one.family}`))
    .toSorted();

describe("the plan of nodes' CIDRs", () => {
  it("gives a node of each zone one of its own pool, and the others one of the pool for all", () => {
    const zone = (value: string) => ({ nodeSelector: { matchLabels: { zone: value } } });
    const pools = [
      nodesPool("all", "10.244.0.0/22", 24, { priority: 5 }),
      nodesPool("east", "10.250.0.0/22", 24, zone("east")),
      nodesPool("west", "172.16.0.0/22", 26, zone("west")),
    ];
    const nodes = [
      node("a", { labels: { zone: "east" } }),
      node("b", { labels: { zone: "west" } }),
      node("c", { labels: { zone: "north" } }),
    ];
    const plan = planNodeCidrs(snapshot({ pools, nodes }));
    assert.deepEqual(granted(plan), ["a east IPv4", "b west IPv4", "c all IPv4"]);
    assert.deepEqual(plan.short, []);
  });

  it("goes on with the next pool where one is full, and says which are where all are", () => {
    const pools = [
      nodesPool("first", "10.0.0.0/24", 24, { priority: 1 }),
      nodesPool("second", "10.9.0.0/24", 24),
    ];
    const plan = planNodeCidrs(snapshot({ pools, nodes: ["c", "a", "b"].map((name) => node(name)) }));
    assert.deepEqual(granted(plan), ["a first IPv4", "b second IPv4"]);
    assert.deepEqual(
      plan.short.map(({ node: name, missing, pools: full }) => [name, missing, full.map(({ pool }) => pool)]),
      [["c", 1, ["first", "second"]]],
    );
  });

  it("counts what a node has, whatever selects it now, and nothing that cools or is for something else", () => {
    const nodes = ["a", "b", "c"].map((name) => node(name));
    const blocks = [
      block("10.244.0.0/24", "a", { granted: false }),
      block("10.244.1.0/24", "b", { releasedAt: 5 }),
      block("10.244.2.0/24", "c", { use: "Cilium" }),
    ];
    const plan = planNodeCidrs(snapshot({ nodes, blocks }));
    assert.deepEqual(granted(plan), ["b all IPv4"]);
    assert.deepEqual(
      plan.short.map(({ node: name, pools }) => [name, pools[0]?.owners]),
      [
        [
          "c",
          [
            { node: "a", blocks: 1 },
            { node: "c", blocks: 1 },
          ],
        ],
      ],
    );
  });

  it("leaves alone what nodes have by no record, of whatever size", () => {
    const inUse = ["10.244.0.128/25", "10.244.2.0/23"].map(named);
    const plan = planNodeCidrs(snapshot({ nodes: [node("a"), node("b")], inUse }));
    assert.deepEqual(granted(plan), ["a all IPv4"]);
    const taken = plan.grants[0]?.taken ?? new IntervalSet();
    const free = cutSpace(plan.grants[0]?.pool ?? assert.fail(), "IPv4")?.free(taken, "a") ?? [];
    assert.deepEqual(
      [...free].map(({ text }) => text),
      ["10.244.1.0/24"],
    );
  });

  it("names the node whose object has so much that nobody else gets anything", () => {
    const { short } = planNodeCidrs(
      snapshot({ nodes: [node("a")], inUse: [named("10.244.1.0/24"), named("10.0.0.0/8")] }),
    );
    assert.deepEqual(short[0]?.pools[0]?.large, { node: "z", cidr: "10.0.0.0/8" });
  });

  it("gives nothing of a pool that is disabled, or that shares addresses with another one, and says so", () => {
    const pools = [
      nodesPool("off", "10.1.0.0/22", 24, { disabled: true }),
      nodesPool("shared", "10.244.0.0/22", 24),
      parsed(poolRecord("web", "10.244.1.0/24")),
    ];
    const { grants, short } = planNodeCidrs(snapshot({ pools, nodes: [node("a")] }));
    assert.deepEqual(grants, []);
    assert.deepEqual(
      short[0]?.pools.map(({ pool, reason, other }) => [pool, reason, other]),
      [
        ["off", "disabled", undefined],
        ["shared", "overlaps", "web"],
      ],
    );
  });

  it("gives several of a family to whoever wants them, in pools that do not touch", () => {
    const pools = [nodesPool("one", "10.0.0.0/24", 25), nodesPool("two", "172.16.0.0/24", 25)];
    const plan = planNodeCidrs(snapshot({ pools, nodes: [node("a", { wants: { IPv4: 3 } })] }));
    assert.deepEqual(granted(plan), ["a one IPv4", "a one IPv4", "a two IPv4"]);
  });
});

const LABELS = [{}, { zone: "a" }, { zone: "b" }, { zone: "a", gpu: "yes" }];
const SELECTORS = [undefined, { matchLabels: { zone: "a" } }, { matchLabels: { zone: "a", gpu: "yes" } }];
const drawnWorld = fc.record({
  pools: fc.array(
    fc.record({
      selector: fc.nat(2),
      length: fc.integer({ min: 22, max: 25 }),
      priority: fc.nat(2),
      isOff: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  nodes: fc.array(fc.record({ labels: fc.nat(3), wants: fc.nat(3) }), { maxLength: 12 }),
  inUse: fc.array(fc.tuple(fc.nat(3), fc.nat(1023), fc.integer({ min: 22, max: 32 })), { maxLength: 4 }),
});

/** What the plan would come to, if nobody else writes. */
function carryOut(plan: NodeCidrPlan): Block[] {
  return plan.grants.flatMap(({ pool, requests, taken }) =>
    requests.map(({ node: owner, nodeUID, family }) => {
      const space = cutSpace(pool, family) ?? assert.fail();
      const cidr = space.free(taken, owner).next().value ?? assert.fail(`${pool.name} has none for ${owner}`);
      taken.add(space.numberOf(cidr));
      return block(cidr.text, owner, { pool: pool.name, nodeUID });
    }),
  );
}

type Drawn = typeof drawnWorld extends fc.Arbitrary<infer T> ? T : never;

function worldOf(drawn: Drawn): Pick<CidrSnapshot, "pools" | "nodes" | "inUse"> {
  const pools = drawn.pools.map(({ selector, length, priority, isOff }, i) => {
    const nodeSelector = SELECTORS[selector];
    return nodesPool(`p${i}`, `10.${i}.0.0/22`, length, {
      ...{ priority, disabled: isOff },
      ...(nodeSelector && { nodeSelector }),
    });
  });
  const nodes = drawn.nodes.map(({ labels, wants }, i) =>
    node(`n${i}`, { labels: LABELS[labels] ?? {}, wants: { IPv4: wants } }),
  );
  const inUse = drawn.inUse.map(([p, n, length]) => named(`10.${p}.${n >> 8}.${n & 255}/${length}`));
  return { pools, nodes, inUse };
}

function assertDisjoint(blocks: readonly Block[], inUse: readonly NamedCidr[]): void {
  const all = blocks.map(({ cidr }) => fullInterval(network(cidr)));
  for (const [i, one] of all.entries()) {
    const others = [...all.slice(i + 1), ...inUse.map(({ cidr }) => fullInterval(cidr))];
    assert.equal(
      others.find((other) => intersection(one, other) !== undefined),
      undefined,
    );
  }
}

function leftIn(pool: Pool, blocks: readonly Block[], inUse: readonly NamedCidr[]): bigint {
  const taken = new IntervalSet();
  const space = cutSpace(pool, "IPv4") ?? assert.fail();
  for (const { cidr } of inUse) taken.addInterval(space.numbersIn(cidr));
  for (const one of blocks) if (one.pool === pool.name) taken.add(space.numberOf(network(one.cidr)));
  return space.countWithout(taken);
}

describe("any plan of nodes' CIDRs", () => {
  it("can be carried out, gives no address twice, leaves nobody without while a pool has one, and then plans nothing", () => {
    const property = fc.property(drawnWorld, (drawn) => {
      const { pools, nodes, inUse } = worldOf(drawn);
      const plan = planNodeCidrs(snapshot({ pools, nodes, inUse }));
      const blocks = carryOut(plan);
      assertDisjoint(blocks, inUse);
      for (const { node: owner, missing } of plan.short) {
        const { labels, wants } = nodes.find((one) => one.node === owner) ?? assert.fail();
        assert.equal(blocks.filter((one) => one.node === owner).length + missing, wants.IPv4);
        const selecting = pools.filter((pool) => !pool.disabled && matches(pool.spec.nodeSelector, labels));
        for (const pool of selecting)
          assert.equal(leftIn(pool, blocks, inUse), 0n, `${pool.name} for ${owner}`);
      }
      const next = planNodeCidrs(snapshot({ pools, nodes, inUse, blocks }));
      assert.deepEqual([next.grants.length, next.short.length], [0, plan.short.length]);
    });
    fc.assert(property);
  });

  it("serves families apart", () => {
    const pools = [nodesPool("four", "10.0.0.0/24", 24), nodesPool("six", "fd00:10::/48", 64)];
    const wants: Partial<Record<Family, number>> = { IPv4: 1, IPv6: 1 };
    const plan = planNodeCidrs(snapshot({ pools, nodes: [node("a", { wants }), node("b", { wants })] }));
    assert.deepEqual(granted(plan), ["a four IPv4", "a six IPv6", "b six IPv6"]);
    assert.deepEqual(
      plan.short.map((one) => `${one.node} ${one.family}`),
      ["b IPv4"],
    );
  });
});
