// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compare, median, quantile, spread, summarise } from "./statistics.ts";

const numbers = fc.array(fc.double({ min: -1e9, max: 1e9, noNaN: true }), { minLength: 1, maxLength: 50 });

describe("quantile", () => {
  it("takes the middle of an odd count and between the two of an even one, in whatever order", () => {
    assert.equal(median([9, 1, 5]), 5);
    assert.equal(median([4, 1, 3, 2]), 2.5);
  });

  it("interpolates between neighbours", () => {
    assert.equal(quantile([0, 10, 20, 30, 40], 0.1), 4);
    assert.equal(quantile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 0.99), 10.9);
  });

  it("sorts numbers as numbers", () => {
    assert.equal(median([10, 9, 100]), 10);
  });

  it("lies between the extremes and rises with q", () => {
    const q = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(numbers, q, q, (values, a, b) => {
        const [low, high] = [quantile(values, Math.min(a, b)), quantile(values, Math.max(a, b))];
        assert.ok(low <= high + 1e-6);
        assert.ok(Math.min(...values) <= low && high <= Math.max(...values));
      }),
    );
  });

  it("leaves its values as they are", () => {
    const values = [3, 1, 2];
    quantile(values, 0.5);
    assert.deepEqual(values, [3, 1, 2]);
  });

  it("refuses to tell anything of nothing", () => {
    assert.throws(() => median([]), new RangeError("there is no quantile of nothing"));
  });
});

describe("summarise", () => {
  it("tells count, median, 99th percentile and extremes", () => {
    const values = Array.from({ length: 101 }, (_, i) => 100 - i);
    assert.deepEqual(summarise(values), { count: 101, p50: 50, p99: 99, least: 0, most: 100 });
  });
});

describe("compare", () => {
  it("divides the medians of all rounds and shows what single rounds would have said", () => {
    const ours = [
      [1, 1, 1],
      [3, 3, 3],
    ];
    const theirs = [
      [2, 2, 2],
      [4, 4, 4],
    ];
    assert.deepEqual(compare(ours, theirs), { ratio: 2 / 3, least: 0.5, most: 0.75 });
  });

  it("refuses sides that were not measured together", () => {
    assert.throws(() => compare([[1]], []), new RangeError("the sides differ in their rounds"));
  });
});

describe("spread", () => {
  it("is 0 for what stays the same and 0.5 for half more", () => {
    assert.equal(spread([7, 7]), 0);
    assert.equal(spread([2, 3, 2.5]), 0.5);
  });
});
