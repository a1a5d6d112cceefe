// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { toNumber } from "../../../allocator/ip/address.ts";
import { address } from "../testing/node-bench.ts";
import { AddressSet, withLeases } from "./address-set.ts";

describe("addresses that host-local gave away", () => {
  const at = (host: number) => address(`10.1.2.${host}`);
  const number = (host: number) => toNumber(at(host));
  const space = new AddressSet();
  space.hold(at(3), "ours");
  const taken = withLeases(space, new Map([2, 3, 4, 6].map((host) => [at(host), `theirs ${host}`])));

  it("are skipped with the node's own", () => {
    assert.equal(taken.nextFree("IPv4", number(2), number(9)), number(5));
    assert.equal(taken.nextFree("IPv4", number(6), number(9)), number(7));
    assert.equal(taken.nextFree("IPv4", number(2), number(4)), undefined);
    assert.equal(taken.nextFree("IPv4", number(6), number(6)), undefined);
    assert.equal(taken.nextFree("IPv6", number(2), number(9)), number(2));
  });

  it("are told apart from the node's own, which come first", () => {
    assert.deepEqual(
      [2, 3, 5].map((host) => taken.holderOf(at(host))),
      ["theirs 2", "ours", undefined],
    );
  });

  it("cost nothing where there are none", () => {
    assert.equal(withLeases(space, new Map()), space);
  });
});
