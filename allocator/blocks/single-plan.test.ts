// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Divisible, planGrants, planRequests, type SingleSituation } from "./single-plan.ts";

const need = (node: string) => ({ node, nodeUID: `uid-of-${node}`, pods: 0 });
const block = (cidr: string, more: Partial<Divisible> = {}): Divisible => {
  return { cidr, node: "a", ready: 0, unused: 0, recalled: 0, overdue: false, ...more };
};
const plan = (situation: Partial<SingleSituation>) => {
  const about = {
    ...{ short: [{ need: need("c"), missing: 2 }], coming: 0, blocks: [], spareOf: () => 8 },
    ...situation,
  };
  const grants = planGrants(about);
  const [one] = about.short;
  assert.ok(one !== undefined);
  const asks = planRequests({ ...about, short: [{ ...one, missing: one.missing - grants.length }] });
  const given = grants.map(({ need: { node }, cidr }) => `${node} of ${cidr}`);
  return [...given, ...asks.map(({ cidr, addresses }) => `ask ${cidr} for ${addresses}`)].join(", ");
};

describe("single addresses of blocks", () => {
  it("that are ready are given, and owners are asked for the rest: those with most that they do not use first", () => {
    const blocks = [block("x", { ready: 1, unused: 1 }), block("y", { unused: 4, node: "b" })];
    assert.equal(plan({ blocks }), "c of x, ask y for 1");
    assert.equal(
      plan({ blocks: [block("x", { unused: 1 }), block("y", { unused: 4, node: "b" })] }),
      "ask y for 2",
    );
  });

  it("are given though whole blocks are about to come back, and not asked for", () => {
    assert.equal(plan({ coming: 2, blocks: [block("x", { ready: 1, unused: 4 })] }), "c of x");
    assert.equal(plan({ coming: 2, blocks: [block("x", { unused: 4 })] }), "");
    assert.equal(plan({ coming: 1, blocks: [block("x", { unused: 4 })] }), "ask x for 1");
  });

  it("are asked for once, and again of another when the first has none", () => {
    assert.equal(plan({ blocks: [block("x", { unused: 3, recalled: 2 }), block("y", { unused: 3 })] }), "");
    const full = [block("x", { unused: 0, recalled: 2 }), block("y", { unused: 3, node: "b" })];
    assert.equal(plan({ blocks: full }), "ask y for 2");
  });

  it("are asked of others when an owner does not answer, and of it last", () => {
    const silent = block("x", { unused: 3, recalled: 2, overdue: true });
    const [own, other] = [block("y", { unused: 3 }), block("z", { unused: 1, node: "b" })];
    assert.equal(plan({ blocks: [silent, own, other] }), "ask z for 1, ask y for 1");
    assert.equal(plan({ blocks: [silent] }), "");
  });

  it("are asked of nobody whose pods need them, nor of a block that has no owner", () => {
    const blocks = [block("x", { unused: 3 }), block("z", { unused: 3, node: undefined })];
    assert.equal(plan({ blocks, spareOf: () => 0 }), "");
    assert.equal(plan({ blocks, spareOf: () => 1 }), "ask x for 1");
  });
});
