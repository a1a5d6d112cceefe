// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { Rests } from "./rests.ts";

describe("Rests", () => {
  it("last twice as long after each fault, 50 s at most, and begin anew after none", () => {
    const clock = new ManualClock();
    const rests = new Rests(clock);
    const lengthOf = (key: string) => {
      let ms = 0;
      for (rests.begin(key); rests.isResting(key); ms += 1_000) clock.advance(1_000);
      return ms / 1_000;
    };
    assert.deepEqual(
      Array.from({ length: 6 }, () => lengthOf("a")),
      [5, 10, 20, 40, 50, 50],
    );
    assert.equal(lengthOf("b"), 5);
    rests.end("a");
    assert.equal(lengthOf("a"), 5);
  });

  it("are forgotten when nobody comes back to what met a fault", () => {
    const clock = new ManualClock();
    const rests = new Rests(clock);
    for (let faults = 0; faults < 3; faults++) rests.begin("a");
    clock.advance(121_000);
    rests.forgetOld();
    rests.begin("a");
    clock.advance(5_000);
    assert.equal(rests.isResting("a"), false);
  });
});
