// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatDuration, parseDuration, shortDuration } from "./go-duration.ts";

describe("parseDuration", () => {
  for (const [text, ms] of [
    ["0", 0],
    ["0s", 0],
    ["30s", 30_000],
    ["1h30m", 5_400_000],
    ["500ms", 500],
    ["5m0s", 300_000],
    ["1.5h", 5_400_000],
    ["1.1s", 1_100],
    [".5s", 500],
    ["1.s", 1_000],
    ["1h1s1m", 3_661_000],
    ["1500us", 2],
    ["2000000ns", 2],
    ["1ns", 1],
    ["1000µs", 1],
    ["1000μs", 1],
    ["0.0004ms", 1],
    ["2540400h10m10s", 9_145_440_610_000],
    ["2562047h47m16.8547758s", 9_223_372_036_854],
  ] as const) {
    it(`reads ${text}`, () => assert.equal(parseDuration(text), ms));
  }

  for (const text of [
    "",
    "30",
    "s",
    "-5s",
    "+5s",
    "1h 30m",
    " 1s",
    "1d",
    "1w",
    "1S",
    ".s",
    "1..5s",
    "1,5s",
    "infinity",
    "1e3s",
    "2562048h",
    "2562047h47m16.854775808s",
    `${"9".repeat(60)}s`,
    "1s".repeat(100_000),
  ]) {
    it(`refuses ${JSON.stringify(text.slice(0, 20))}`, () => assert.equal(parseDuration(text), undefined));
  }
});

describe("formatDuration", () => {
  for (const [ms, text] of [
    [0, "0s"],
    [1, "1ms"],
    [999, "999ms"],
    [1_000, "1s"],
    [1_500, "1.5s"],
    [59_999, "59.999s"],
    [60_000, "1m0s"],
    [300_000, "5m0s"],
    [5_400_000, "1h30m0s"],
    [90_061_001, "25h1m1.001s"],
  ] as const) {
    it(`writes ${ms} ms as ${text}`, () => assert.equal(formatDuration(ms), text));
  }

  it("writes what parseDuration reads back", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9_000_000_000_000 }), (ms) => {
        assert.equal(parseDuration(formatDuration(ms)), ms);
      }),
    );
  });
});

describe("shortDuration", () => {
  for (const [ms, text] of [
    [0, "0s"],
    [500, "500ms"],
    [30_000, "30s"],
    [300_000, "5m"],
    [310_000, "5m10s"],
    [600_000, "10m"],
    [5_400_000, "1h30m"],
    [3_610_000, "1h0m10s"],
    [72_000_000, "20h"],
    [172_800_000, "48h"],
  ] as const) {
    it(`writes ${ms} ms as ${text}`, () => {
      assert.equal(shortDuration(ms), text);
      assert.equal(parseDuration(text), ms);
    });
  }
});
