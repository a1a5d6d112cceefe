// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { remembered, singleFlight } from "./single-flight.ts";
import { ManualClock } from "./testing/manual-clock.ts";

/** Counts up with every call; the third one fails. */
function counter(): { ask: () => Promise<number>; calls: () => number } {
  let calls = 0;
  const ask = async () => {
    calls++;
    if (calls === 3) throw new Error("away");
    return calls;
  };
  return { ask, calls: () => calls };
}

describe("what many ask for", () => {
  it("is asked once for all who ask while it is under way", async () => {
    const { ask } = counter();
    const both = singleFlight(ask);
    assert.deepEqual(await Promise.all([both(), both()]), [1, 1]);
    assert.equal(await both(), 2);
  });

  it("is remembered for its time, and a failure is not", async () => {
    const { ask, calls } = counter();
    const clock = new ManualClock();
    const known = remembered(ask, clock, 5_000);
    assert.deepEqual(await Promise.all([known(), known()]), [1, 1]);
    await clock.advance(4_999);
    assert.equal(await known(), 1);
    await clock.advance(1);
    assert.equal(await known(), 2);
    await clock.advance(5_000);
    await assert.rejects(known(), /away/);
    assert.equal(await known(), 4);
    assert.equal(calls(), 4);
  });
});
