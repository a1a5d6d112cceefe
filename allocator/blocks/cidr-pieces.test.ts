// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parsed } from "../../test/support/fixtures.ts";
import { parseCidr } from "../ip/address.ts";
import { piecesOf } from "./cidr-pieces.ts";
import { nodesPool } from "./testing/cidr-nodes.ts";

describe("a CIDR that a node has already", () => {
  const pool = parsed(nodesPool("four", "10.244.0.0/22", 24));
  const texts = (cidr: string) =>
    piecesOf(pool, parseCidr(cidr) ?? assert.fail(cidr))?.map(({ text }) => text);

  it("is recorded as the pieces of the pool that it is made of, or lies in", () => {
    assert.deepEqual(texts("10.244.2.0/24"), ["10.244.2.0/24"]);
    assert.deepEqual(texts("10.244.2.0/23"), ["10.244.2.0/24", "10.244.3.0/24"]);
    assert.deepEqual(texts("10.244.2.64/26"), ["10.244.2.0/24"]);
    assert.deepEqual(texts("10.244.0.0/21")?.length, 4);
    assert.deepEqual([texts("10.9.0.0/24"), texts("fd00::/64")], [[], []]);
  });

  it("is too large for a pool that it takes most of, and for no other one", () => {
    assert.equal(texts("10.0.0.0/8"), undefined);
    assert.deepEqual(texts("11.0.0.0/8"), []);
  });
});
