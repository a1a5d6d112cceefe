// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createRandom } from "./random.ts";

describe("random", () => {
  it("makes tokens of 26 letters that do not repeat", () => {
    const random = createRandom();
    const tokens = Array.from({ length: 2000 }, () => random.token());
    for (const token of tokens) assert.match(token, /^[a-z2-7]{26}$/);
    assert.equal(new Set(tokens).size, tokens.length);
  });

  it("makes each of bytes of its own, whatever else is asked for in between", () => {
    const random = createRandom();
    const made = Array.from({ length: 1000 }, (_, i) =>
      Array.from({ length: i % 7 }, () => random.fraction()).concat([random.fraction()]),
    ).flat();
    const tokens = Array.from({ length: 100 }, () => [random.fraction(), random.token()]).flat();
    const all = [...made, ...tokens];
    assert.equal(new Set(all).size, all.length);
    assert.ok(!made.includes(0));
  });

  it("uses every letter of the alphabet", () => {
    const random = createRandom();
    const seen = new Set(Array.from({ length: 200 }, () => random.token()).join(""));
    assert.equal(seen.size, 32);
  });

  it("makes fractions from 0 to below 1, spread over the whole", () => {
    const random = createRandom();
    const tenths = new Set<number>();
    for (let i = 0; i < 2000; i++) {
      const fraction = random.fraction();
      assert.ok(fraction >= 0 && fraction < 1);
      tenths.add(Math.floor(fraction * 10));
    }
    assert.equal(tenths.size, 10);
  });
});
