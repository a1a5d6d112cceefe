// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "../allocator/base/ports.ts";
import { AnchoredClock } from "./anchored-clock.ts";

const YEAR_MS = 365 * 86_400_000;

/** A host whose wall clock is set by hand. */
class Host implements Clock {
  wall = 1_700_000_000_000;
  elapsed = 5_000;
  now = () => this.wall;
  monotonic = () => this.elapsed;
  sleep = async () => {};

  passes(ms: number): void {
    this.wall += ms;
    this.elapsed += ms;
  }
}

describe("an anchored clock", () => {
  it("goes on as its host's began, however that one jumps", () => {
    const host = new Host();
    const clock = new AnchoredClock(host);
    const began = clock.now();
    assert.equal(began, 1_700_000_000_000);
    for (const jump of [YEAR_MS, -3 * YEAR_MS, 1]) {
      host.wall += jump;
      host.passes(1_000);
    }
    assert.equal(clock.now(), began + 3_000);
    assert.equal(clock.monotonic(), 8_000);
  });

  it("is the API server's once it was told, on every host", () => {
    const [ahead, behind] = [new Host(), new Host()];
    ahead.wall += 600_000;
    behind.wall -= 600_000;
    const clocks = [ahead, behind].map((host) => {
      const clock = new AnchoredClock(host);
      clock.observe(1_800_000_000_000);
      host.passes(700);
      clock.observe(1_800_000_000_000); // the same second
      host.passes(600);
      clock.observe(1_800_000_001_000);
      return clock.now();
    });
    assert.deepEqual(clocks, [1_800_000_001_300, 1_800_000_001_300]);
  });

  it("has an alarm where its host has one", () => {
    const alarm = () => () => undefined;
    const has = (host: Clock) => new AnchoredClock(host).alarm !== undefined;
    assert.deepEqual([has(new Host()), has(Object.assign(new Host(), { alarm }))], [false, true]);
  });

  it("does not go back for an answer that came late, and follows a server that was set", () => {
    const host = new Host();
    const clock = new AnchoredClock(host);
    clock.observe(1_800_000_000_000);
    host.passes(3_000);
    clock.observe(1_800_000_001_000);
    assert.equal(clock.now(), 1_800_000_003_000);
    clock.observe(1_700_000_000_000);
    assert.equal(clock.now(), 1_700_000_000_000);
  });
});
