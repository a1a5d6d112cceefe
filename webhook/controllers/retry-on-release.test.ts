// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { poolRecord, reservationRecord, storedAs, viewOf } from "../../test/support/fixtures.ts";
import { onAddressFreed, Waiting } from "./retry-on-release.ts";

function waitingOn(clock: ManualClock) {
  const later: string[] = [];
  const waiting = new Waiting({
    clock,
    random: { fraction: () => 1 },
    later: (key, ms) => later.push(`${key} in ${ms}`),
  });
  return { waiting, later };
}

describe("who waits for an address", () => {
  it("looks again later each time, a minute later at most, and sooner after it had what it wants", () => {
    const { waiting } = waitingOn(new ManualClock());
    const waits = Array.from({ length: 8 }, () => waiting.refused("a"));
    assert.deepEqual(
      waits.map((outcome) => (outcome.kind === "again" ? outcome.afterMs : 0)),
      [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000],
    );
    waiting.leave("a");
    assert.deepEqual(waiting.refused("a"), { kind: "again", afterMs: 2_000 });
  });

  it("looks once when something is freed, and again after 3 s when more was", () => {
    const clock = new ManualClock();
    const { waiting, later } = waitingOn(clock);
    waiting.enter("a");
    waiting.enter("b");
    waiting.freed();
    waiting.freed();
    assert.deepEqual(later, ["a in 1", "b in 1"]);
    clock.advance(10);
    waiting.leave("b");
    waiting.freed();
    waiting.freed();
    assert.deepEqual(later.slice(2), ["a in 2991"]);
    clock.advance(10_000);
    waiting.freed();
    assert.deepEqual(later.slice(3), ["a in 1"]);
  });

  it("looks with the others when it is refused in the middle of that", () => {
    const clock = new ManualClock();
    const { waiting } = waitingOn(clock);
    waiting.enter("a");
    waiting.freed();
    clock.advance(5);
    waiting.freed(); // due in 2,996 ms
    for (let n = 0; n < 5; n++) waiting.refused("b");
    assert.deepEqual(waiting.refused("b"), { kind: "again", afterMs: 2_996 });
  });

  it("looks with the others when it comes in the middle of that and waits for nothing else", () => {
    const clock = new ManualClock();
    const { waiting, later } = waitingOn(clock);
    waiting.enter("a");
    waiting.freed();
    clock.advance(5);
    waiting.freed(); // due in 2,996 ms
    clock.advance(1_000);
    later.length = 0;
    waiting.park("b");
    clock.advance(500);
    waiting.freed();
    assert.deepEqual(later, ["b in 1996"]);
    clock.advance(1_496);
    waiting.park("b");
    assert.deepEqual(later, ["b in 1996"], "it looks once");
    waiting.freed();
    assert.deepEqual(later.slice(1), ["a in 3000", "b in 3000"]);
  });

  it("is nobody's affair while nobody waits", () => {
    const { waiting, later } = waitingOn(new ManualClock());
    waiting.freed();
    waiting.enter("a");
    assert.deepEqual(later, []);
  });

  it("is told of addresses given back, free again, and of pools that change, and of nothing else", () => {
    const clock = new ManualClock();
    const { waiting, later } = waitingOn(clock);
    waiting.enter("a");
    const cache = viewOf({ pools: [poolRecord("db", "10.20.0.0/24")] });
    const forget = onAddressFreed(cache, waiting);
    const reported = (change: () => void) => {
      clock.advance(10_000);
      const before = later.length;
      change();
      return later.length > before;
    };
    const put = (over = {}) =>
      cache.apply("reservation", {
        type: "put",
        stored: storedAs("reservation", reservationRecord("10.20.0.70", over)),
      });
    const pool = (over = {}) =>
      cache.apply("pool", { type: "put", stored: storedAs("pool", poolRecord("db", "10.20.0.0/24", over)) });
    assert.equal(
      reported(() => put()),
      false,
    );
    assert.equal(
      reported(() => put({ marked: true })),
      false,
    );
    assert.equal(
      reported(() => put({ releasedAt: 1 })),
      true,
    );
    assert.equal(
      reported(() => cache.apply("reservation", { type: "gone", key: "10.20.0.70" })),
      true,
    );
    assert.equal(
      reported(() => pool()),
      false,
    );
    assert.equal(
      reported(() => pool({ disabled: true })),
      true,
    );
    assert.equal(
      reported(() => cache.apply("pool", { type: "gone", key: "db" })),
      true,
    );
    for (const one of forget) one();
    assert.equal(
      reported(() => pool()),
      false,
    );
  });
});
