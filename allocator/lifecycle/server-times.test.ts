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

  it("is forgotten when there are too many, and not kept for ever", () => {
    const stamps = new ServerTimes();
    for (let i = 0; i <= 10_000; i++) stamps.past(`r${i}`, 9e15, i);
    assert.equal(stamps.past("r10000", 9e15, 20_000), 10_000);
    assert.equal(stamps.past("r0", 9e15, 20_000), 20_000);
  });
});
