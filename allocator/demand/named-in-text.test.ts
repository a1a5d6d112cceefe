// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { poolRecord, viewOf } from "../../test/support/fixtures.ts";
import { ownAddressIn } from "./named-in-text.ts";

const VIEW = viewOf({ pools: [poolRecord("db", "10.20.0.0/24"), poolRecord("six", "fd00:20::/120")] });

describe("a range in another system's words", () => {
  for (const [text, found] of [
    ["10.19.0.1-10.21.0.1", "10.20.0.1"],
    ["10.19.0.1..10.21.0.1", "10.20.0.1"],
    ['["10.9.0.7", "10.19.0.1 - 10.21.0.1"]', "10.20.0.1"],
    ["10.9.0.7;10.19.255.9-10.20.0.3", "10.20.0.3"],
    ["fd00:1f::1..fd00:21::1", "fd00:20::1"],
    ["10.19.0.1-10.19.255.255", undefined],
    ["10.21.0.1-10.19.0.1", undefined],
    ["10.19.0.1-fd00:21::1", undefined],
    ["my-pool", undefined],
    ["10.20.0.0/16", "10.20.0.1"],
    ['{"ips": ["10.0.0.0/8"]}', "10.20.0.1"],
    ["10.20.0.128/25", "10.20.0.128"],
    ["fd00::/16", "fd00:20::1"],
    ["10.21.0.0/16", undefined],
    ["10.19.0.1/8", undefined],
    ['"0.0.0.0/0", "::/0"', undefined],
  ] as const)
    it(`${text} has ${found ?? "no address"} of Berth's`, () =>
      assert.equal(ownAddressIn(VIEW, text), found));
});

describe("many addresses in another system's words", () => {
  it("are looked for in all pools together", () => {
    let looks = 0;
    const pools = VIEW.pools().map((pool) =>
      Object.defineProperty({ ...pool }, "ranges", { get: () => ++looks && pool.ranges }),
    );
    const view = { pools: () => pools };
    const many = Array.from({ length: 256 }, (_, n) => `172.16.0.${n} 172.17.0.${n}-172.17.1.${n}`).join();
    assert.equal(ownAddressIn(view, many), undefined);
    assert.equal(ownAddressIn(view, `${many},10.20.0.7`), "10.20.0.7");
    assert.equal(looks, pools.length, "each is looked at once, however many addresses there are");
  });
});
