// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Holding, type NodeNeed, type PoolSituation, planBlocks } from "./block-plan.ts";

function situation(
  over: Partial<Omit<PoolSituation, "nodes">> & { readonly pods: readonly number[] },
): PoolSituation {
  const { pods, total = 100n, size = 64, held = [], ahead = 2, cooling = 0 } = over;
  return {
    total,
    size,
    held,
    ahead,
    cooling,
    nodes: pods.map((count, i) => ({ node: `n${i}`, nodeUID: `u${i}`, pods: count })),
  };
}

function full(node: string, usable = 64): Holding {
  return { node, usable };
}

/** Who gets how many. */
function shares(of: PoolSituation): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { node } of planBlocks(of).grants) counts[node] = (counts[node] ?? 0) + 1;
  return counts;
}

describe("the plan of blocks", () => {
  it("gives each node what its pods need, and two ahead", () => {
    assert.deepEqual(shares(situation({ pods: [0, 1, 64, 65] })), { n0: 2, n1: 3, n2: 3, n3: 4 });
  });

  it("gives as many ahead as the pool says, and where that is none only what pods need", () => {
    assert.deepEqual(shares(situation({ pods: [0, 1, 65], ahead: 0 })), { n1: 1, n2: 2 });
    assert.deepEqual(shares(situation({ pods: [0, 64], ahead: 3 })), { n0: 3, n1: 4 });
  });

  it("gives the next one before the last is full", () => {
    const held = [full("n0"), full("n0"), full("n0")];
    assert.deepEqual(shares(situation({ pods: [64], held })), {});
    assert.deepEqual(shares(situation({ pods: [65], held })), { n0: 1 });
  });

  it("counts what is a hole as missing", () => {
    assert.deepEqual(shares(situation({ pods: [0], held: [full("n0", 60), full("n0", 60)] })), { n0: 1 });
  });

  it("gives first what is needed, and ahead only while one is left for each that has none", () => {
    assert.deepEqual(shares(situation({ total: 3n, pods: [100, 10, 0] })), { n0: 2, n1: 1 });
    assert.deepEqual(shares(situation({ total: 4n, pods: [64, 0, 0, 0] })), { n0: 1, n1: 1, n2: 1, n3: 1 });
    assert.deepEqual(shares(situation({ total: 6n, pods: [64, 0, 0, 0] })), { n0: 3, n1: 1, n2: 1, n3: 1 });
  });

  it("asks those who can spare one when somebody lacks one", () => {
    const held = [full("n0"), full("n0"), full("n0"), full("n1"), full("n1")];
    const plan = planBlocks(situation({ total: 5n, held, pods: [1, 1, 70] }));
    assert.deepEqual(plan.grants, []);
    assert.deepEqual(plan.short, [{ node: "n2", missing: 70 }]);
    assert.deepEqual(plan.recalls, [{ node: "n0", blocks: 2 }]);
  });

  it("asks for whole blocks, those at the ends of a range with few addresses among them", () => {
    const held = [full("n0", 3), full("n0", 4), full("n1", 4), full("n1", 2)];
    const of = (...pods: readonly number[]) =>
      planBlocks(situation({ total: 4n, size: 4, held, pods })).recalls;
    assert.deepEqual(of(0, 7), [{ node: "n0", blocks: 1 }]);
    assert.deepEqual(of(0, 11), [{ node: "n0", blocks: 2 }]);
    assert.deepEqual(of(4, 7), [{ node: "n0", blocks: 1 }]);
    assert.deepEqual(of(5, 7), []);
    assert.deepEqual(of(8, 4), [{ node: "n1", blocks: 1 }]);
  });

  it("asks nobody for what cools, and not for long", () => {
    const held = ["cooling" as const, full("n0"), full("n0"), full("n0")];
    const of = (cooling: number, missing: number) =>
      planBlocks(situation({ total: 4n, held, cooling, pods: [0, missing] })).recalls;
    assert.deepEqual(of(0, 70), [{ node: "n0", blocks: 2 }]);
    assert.deepEqual(of(64, 70), [{ node: "n0", blocks: 1 }]);
    assert.deepEqual(of(64, 1), []);
  });

  it("asks others for what an owner was asked for and has not given, and that one last", () => {
    const late = { ...full("n0"), stays: "silent" } as const;
    const of = (...held: readonly Holding[]) =>
      planBlocks(situation({ total: BigInt(held.length), held, pods: [0, 0, 1] })).recalls;
    assert.deepEqual(of(full("n0"), full("n0"), full("n1")), [{ node: "n0", blocks: 1 }]);
    assert.deepEqual(of(late, full("n0"), full("n1")), [{ node: "n1", blocks: 1 }]);
    assert.deepEqual(of(late, full("n0")), [{ node: "n0", blocks: 1 }]);
    assert.deepEqual(of(late), []);
  });

  it("asks for no block that is in use, and the owner of such no later than others", () => {
    const used = { ...full("n0"), stays: "used" } as const;
    const of = (...held: readonly Holding[]) =>
      planBlocks(situation({ total: BigInt(held.length), held, pods: [0, 0, 65] })).recalls;
    assert.deepEqual(of(used, used, used), []);
    assert.deepEqual(of(used, full("n0"), full("n1")), [
      { node: "n0", blocks: 1 },
      { node: "n1", blocks: 1 },
    ]);
  });

  it("asks nobody for what its pods need, and says who is short", () => {
    const held = [full("n0"), full("n1")];
    const plan = planBlocks(situation({ total: 2n, held, pods: [1, 1, 1] }));
    assert.deepEqual([plan.grants, plan.recalls, plan.short], [[], [], [{ node: "n2", missing: 1 }]]);
  });

  it("takes a block that cools for neither free nor anybody's", () => {
    const plan = planBlocks(situation({ total: 2n, held: ["cooling", "cooling"], pods: [1] }));
    assert.deepEqual([plan.grants, plan.short], [[], [{ node: "n0", missing: 1 }]]);
  });

  it("makes up for addresses that cool where pods would have to wait for them, while a block is free", () => {
    const of = (need: Partial<NodeNeed>, over: Partial<PoolSituation> = {}) => {
      const base = situation({ pods: [0], ahead: 0, size: 4, held: [full("n0", 4)], ...over });
      const { grants, recalls, short } = planBlocks({
        ...base,
        nodes: base.nodes.map((one) => ({ ...one, ...need })),
      });
      assert.deepEqual([recalls, short], [[], []]);
      return grants.length;
    };
    assert.equal(of({ pods: 2, cooling: 2 }), 0);
    assert.equal(of({ pods: 2, cooling: 3 }), 1);
    assert.equal(of({ pods: 4, cooling: 4 }), 1);
    assert.equal(of({ pods: 2, cooling: 3 }, { total: 1n }), 0);
    assert.equal(of({ pods: 2, cooling: 3 }, { held: [full("n0", 4), full("n0", 4)] }), 0);
    // its agent has not said yet that they have ended
    assert.equal(of({ pods: 4, knownPods: 1, cooling: 3 }), 0);
    assert.equal(of({ pods: 4, knownPods: 0, cooling: 4 }), 0);
    assert.equal(of({ pods: 4, knownPods: 2, cooling: 3 }), 1);
    assert.equal(of({ pods: 4, knownPods: 1, cooling: 1 }), 0, "the others are sandboxes without a pod");
  });

  it("gives nobody a block for what cools while somebody lacks one", () => {
    const held = [full("n0", 1)];
    const cooling = situation({ total: 2n, size: 1, ahead: 0, held, pods: [1, 2] });
    const nodes = cooling.nodes.map((one) => ({ ...one, cooling: 1 }));
    const { grants, short } = planBlocks({ ...cooling, nodes });
    assert.deepEqual([grants.map(({ node }) => node), short], [["n1"], [{ node: "n1", missing: 1 }]]);
  });

  it("knows no blocks of a node that is not there any more, and does not give them away", () => {
    assert.deepEqual(shares(situation({ total: 3n, held: [full("gone"), full("gone")], pods: [1] })), {
      n0: 1,
    });
  });
});

const any = fc
  .record({
    size: fc.constantFrom(1, 2, 4, 64),
    total: fc.bigInt(0n, 40n),
    pods: fc.array(fc.nat(150), { maxLength: 12 }),
    held: fc.array(
      fc.record({
        node: fc.nat(13),
        usable: fc.nat(64),
        stays: fc.constantFrom(undefined, "used", "silent"),
      }),
      { maxLength: 40 },
    ),
    cooling: fc.nat(3),
    ahead: fc.nat(3),
  })
  .map(({ size, total, pods, held, cooling, ahead }): PoolSituation => {
    const own = held.map(({ node, usable, stays }) => ({
      ...full(`n${node}`, Math.min(usable, size)),
      ...(stays && { stays }),
    }));
    const all = [...own, ...Array.from({ length: cooling }, () => "cooling" as const)];
    return situation({ size, total, pods, ahead, held: all.slice(0, Number(total)) });
  });

describe("any plan of blocks", () => {
  it("gives no more than there is, and nobody more than it needs and two", () => {
    const property = fc.property(any, (of) => {
      const plan = planBlocks(of);
      assert.ok(BigInt(plan.grants.length + of.held.length) <= of.total);
      const after = carriedOut(of);
      for (const need of of.nodes) {
        const before = spareOf(of, need.node);
        const now = spareOf(after, need.node);
        assert.ok(now === before || now < (of.ahead + 1) * of.size, `${need.node} has ${now} to spare`);
        const recalled = plan.recalls.find(({ node }) => node === need.node)?.blocks ?? 0;
        const own = of.held.flatMap((one) =>
          one !== "cooling" && one.node === need.node && one.stays === undefined ? [one.usable] : [],
        );
        const given = own.toSorted((a, b) => a - b).slice(0, recalled);
        const left = given.reduce((sum, usable) => sum - usable, now);
        assert.ok(recalled === 0 || left >= 0, `${need.node} is asked for what it needs`);
        assert.equal(given.length, recalled, `${need.node} has so many`);
      }
    });
    fc.assert(property);
  });

  it("leaves no need unmet while a block is free, and nobody ahead while one is short", () => {
    const property = fc.property(any, (of) => {
      const { short } = planBlocks(of);
      const after = carriedOut(of);
      const lacking = after.nodes.filter(({ node }) => spareOf(after, node) < 0).map(({ node }) => node);
      assert.deepEqual(
        short.map(({ node }) => node),
        lacking,
      );
      if (lacking.length === 0) return;
      assert.equal(BigInt(after.held.length), of.total);
      for (const { node } of planBlocks(of).grants) assert.ok(spareOf(of, node) < 0, `${node} lacks nothing`);
    });
    fc.assert(property);
  });

  it("carried out, plans nothing more", () => {
    const property = fc.property(any, fc.array(fc.nat(8), { maxLength: 12 }), (of, cooling) => {
      const nodes = of.nodes.map((need, i) => ({ ...need, cooling: cooling[i] ?? 0 }));
      assert.deepEqual(planBlocks(carriedOut({ ...of, nodes })).grants, []);
    });
    fc.assert(property);
  });
});

function carriedOut(of: PoolSituation): PoolSituation {
  const given = planBlocks(of).grants.map(({ node }) => full(node, of.size));
  return { ...of, held: [...of.held, ...given] };
}

function spareOf({ held, nodes }: PoolSituation, node: string): number {
  const usable = held.reduce(
    (sum, block) => sum + (block !== "cooling" && block.node === node ? block.usable : 0),
    0,
  );
  return usable - (nodes.find((need) => need.node === node)?.pods ?? 0);
}
