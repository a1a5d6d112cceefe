// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../../test/support/clock.ts";
import { StateTimer } from "./state-timer.ts";

function begin() {
  const clock = new ManualClock();
  return { clock, patience: new StateTimer(clock, { fraction: () => 1 }) };
}

describe("Patience", () => {
  it("counts from when the state began, and anew for another one", () => {
    const { clock, patience } = begin();
    assert.equal(patience.ageOf("shop/a", "busy"), 0);
    clock.advance(700);
    assert.equal(patience.ageOf("shop/a", "busy"), 700);
    assert.equal(patience.ageOf("shop/b", "busy"), 0);
    assert.equal(patience.ageOf("shop/a", "missing"), 0);
    clock.advance(5);
    assert.equal(patience.ageOf("shop/a", "busy"), 0);
  });

  it("waits twice as long each time, 30 s at most, and begins anew with another state", () => {
    const { patience } = begin();
    patience.ageOf("shop/a", "busy");
    const waits = Array.from({ length: 8 }, () => patience.next("shop/a"));
    assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    patience.ageOf("shop/a", "missing");
    assert.equal(patience.next("shop/a"), 500);
    patience.next("shop/a");
    patience.forget("shop/a");
    patience.ageOf("shop/a", "missing");
    assert.equal(patience.next("shop/a"), 500);
  });
});
