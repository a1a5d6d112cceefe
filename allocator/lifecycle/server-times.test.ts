// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ServerTimes } from "./server-times.ts";

describe("a time in a record", () => {
  it("is what it says when it is past", () => {
    const stamps = new ServerTimes();
    assert.equal(stamps.past("a", 900, 1_000), 900);
    assert.equal(stamps.past("a", 1_000, 1_000), 1_000);
  });

  it("counts from when it was met when it is in the future, also once it is past", () => {
    const stamps = new ServerTimes();
    assert.equal(stamps.past("a", 5_000, 1_000), 1_000);
    assert.equal(stamps.past("a", 5_000, 2_000), 1_000);
    assert.equal(stamps.past("a", 5_000, 6_000), 1_000);
    assert.equal(stamps.past("b", 5_000, 2_000), 2_000, "each for itself");
    assert.equal(stamps.past("a", 7_000, 6_500), 6_500, "another time begins anew");
    assert.equal(stamps.past("a", 6_400, 6_500), 6_400);
  });

  it("is remembered of as many records as there are, pass after pass", () => {
    const stamps = new ServerTimes();
    const pass = (now: number) =>
      new Set(Array.from({ length: 25_000 }, (_, i) => stamps.past(`r${i}`, 9e15, now)));
    for (const now of [1_000, 11_000, 700_000]) assert.deepEqual(pass(now), new Set([1_000]));
  });

  it("is not kept for ever when nobody asks for it", () => {
    const stamps = new ServerTimes();
    for (let i = 0; i < 10_000; i++) stamps.past(`r${i}`, 9e15, i);
    stamps.past("r1", 9e15, 500_000);
    stamps.past("another", 9e15, 610_000);
    assert.equal(stamps.past("r1", 9e15, 620_000), 1);
    assert.equal(stamps.past("r0", 9e15, 620_000), 620_000);
  });
});
