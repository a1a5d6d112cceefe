// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Stored } from "../../../allocator/store/store.ts";
import { viewOf } from "../../../test/support/fixtures.ts";
import { readCiliumNode } from "./cilium-node.ts";
import { situationOf } from "./situation.ts";

const [A, B, C] = ["10.0.9.0/28", "10.0.1.0/28", "10.0.5.0/28"];

/** Made at that second; where its object named it, if it had it before. */
function made(cidr: string, second: number, place?: number): Stored<"block"> {
  const whose = { pool: "east", node: "n1", nodeUID: "u", holes: [], granted: true, use: "Cilium" } as const;
  return {
    ...{ key: cidr, uid: cidr, revision: "1", createdAt: second * 1000 },
    record: { cidr, ...whose, ...(place === undefined ? {} : { place }) },
  };
}

function orderOf(...blocks: readonly Stored<"block">[]): readonly string[] {
  const node = readCiliumNode({ metadata: { name: "n1", uid: "u", resourceVersion: "1" } } as never);
  const about = { node, offers: [], quiet: new Set<string>() };
  const orders = [blocks, blocks.toReversed()].map((given) =>
    situationOf(viewOf({}), { ...about, blocks: given }).blocks.map(({ cidr }) => cidr.text),
  );
  const [order = [], reversed] = orders;
  assert.deepEqual(order, reversed, "whatever the cache's order is");
  return order;
}

describe("the CIDRs of a node of Cilium's", () => {
  const rows: readonly (readonly [string, readonly Stored<"block">[], readonly string[]])[] = [
    ["recorded within a second", [made(A, 1, 0), made(B, 1, 1)], [A, B]],
    ["recorded by API servers whose clocks differ", [made(A, 2, 0), made(B, 1, 1)], [A, B]],
    ["of a pool that was made later", [made(A, 9, 0), made(B, 1)], [A, B]],
    ["granted, before another was written into the object", [made(A, 1), made(B, 9, 1)], [A, B]],
    ["granted, beside one of no pool", [made(A, 1, 1), made(B, 9)], [A, B]],
    ["granted in between", [made(A, 1, 0), made(B, 5), made(C, 9, 2)], [A, B, C]],
    ["all granted", [made(C, 1), made(A, 3), made(B, 3)], [C, B, A]],
  ];
  for (const [title, blocks, expected] of rows)
    it(`stand as its object had them: ${title}`, () => assert.deepEqual(orderOf(...blocks), expected));

  it("of one that it had as two pieces leave room as one", () => {
    const [low, high] = ["10.0.9.0/28", "10.0.9.16/28"];
    assert.deepEqual(orderOf(made(low, 1, 0), made(high, 1, 0), made(B, 5), made(C, 9, 2)), [
      low,
      high,
      B,
      C,
    ]);
  });
});
