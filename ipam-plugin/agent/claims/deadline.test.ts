// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { orAborted, within } from "./deadline.ts";

const never = new AbortController().signal;

describe("within", () => {
  it("aborts when the time is over, or with a signal", async () => {
    const clock = new ManualClock();
    const untilAborted = (signal: AbortSignal) =>
      new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("aborted")));
    const late = within({ ms: 100, clock, signals: [never] }, untilAborted);
    clock.advance(100);
    assert.equal(await late, "aborted");
    const gone = new AbortController();
    const cancelled = within({ ms: 100, clock, signals: [never, gone.signal] }, untilAborted);
    gone.abort();
    assert.equal(await cancelled, "aborted");
    assert.equal(clock.sleeping, 0);
  });

  it("goes by the clock's alarm where it has one, and stops it", async () => {
    const stopped: number[] = [];
    let ring = () => {};
    const alarm = (ms: number, then: () => void) => {
      ring = then;
      return () => void stopped.push(ms);
    };
    const clock = Object.assign(new ManualClock(), { alarm });
    assert.equal(await within({ ms: 100, clock, signals: [never] }, async ({ aborted }) => aborted), false);
    const late = within({ ms: 200, clock, signals: [] }, async (signal) => {
      ring();
      return signal.aborted;
    });
    assert.deepEqual([await late, stopped, clock.sleeping], [true, [100, 200], 0]);
  });

  it("has aborted, for its reason, where one of the signals has before", async () => {
    const gone = AbortSignal.abort("the client is gone");
    const limit = { ms: 100, clock: new ManualClock(), signals: [never, gone] };
    const seen = await within(limit, async ({ aborted, reason }) => [aborted, reason]);
    assert.deepEqual(seen, [true, "the client is gone"]);
  });

  it("leaves signal and clock alone when the work ends in time, or throws", async () => {
    const clock = new ManualClock();
    const gone = new AbortController();
    let kept: AbortSignal = AbortSignal.abort();
    await within({ ms: 100, clock, signals: [gone.signal] }, async (signal) => {
      kept = signal;
    });
    gone.abort();
    assert.equal(clock.sleeping, 0);
    assert.equal(kept.aborted, false);
    await assert.rejects(
      within({ ms: 100, clock, signals: [] }, () => Promise.reject(new Error("x"))),
      /^Error: x$/,
    );
    assert.equal(clock.sleeping, 0);
  });
});

describe("orAborted", () => {
  it("gives the work's value, its error, or undefined as soon as the signal aborts", async () => {
    assert.equal(await orAborted(Promise.resolve(5), never), 5);
    await assert.rejects(orAborted(Promise.reject(new Error("x")), never), /^Error: x$/);
    const gone = new AbortController();
    const waiting = orAborted(new Promise(() => {}), gone.signal);
    gone.abort();
    assert.equal(await waiting, undefined);
    assert.equal(await orAborted(new Promise(() => {}), gone.signal), undefined);
  });
});
