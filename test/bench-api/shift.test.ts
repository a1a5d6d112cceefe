// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Hours, workShift } from "./shift.ts";

/** A clock that goes on from one sleeper to the next, as soon as nobody is at work. */
class SteppingClock {
  #now = 0;
  readonly #sleepers: { at: number; wake: () => void }[] = [];

  monotonic(): number {
    return this.#now;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((wake) => this.#sleepers.push({ at: this.#now + ms, wake }));
  }

  /** Until the promise is settled. */
  async run<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = work.finally(() => {
      settled = true;
    });
    done.catch(() => {}); // it may fail before it is waited for
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (settled) return await done;
      this.#sleepers.sort((a, b) => a.at - b.at);
      const next = this.#sleepers.shift();
      if (next === undefined) throw new Error("everybody waits for ever");
      this.#now = Math.max(this.#now, next.at);
      next.wake();
    }
  }
}

const hours: Hours = { startAt: 1_000, warmMs: 100, ms: 1_000 };

describe("workShift", () => {
  it("counts what ends within its time, of every worker, and what it did besides", async () => {
    const clock = new SteppingClock();
    const work = async (worker: number) => {
      await clock.sleep(worker === 0 ? 30 : 300);
      return 2;
    };
    const { times, again, done } = await clock.run(workShift(work, 2, hours, clock));
    // from 1100 to 2100: the one ends at 1030, 1060, ... 2110; the other at 1300, 1600, 1900, 2200
    const [quick, slow] = [times.filter((ms) => ms === 30).length, times.filter((ms) => ms === 300).length];
    assert.deepEqual([quick, slow, times.length, again, done], [33, 3, 36, 72, 41]);
  });

  it("does not count what is broken off, and waits for it", async () => {
    const clock = new SteppingClock();
    let ended = false;
    const work = async (_: number, __: number, signal: AbortSignal) => {
      while (!signal.aborted) await clock.sleep(10);
      ended = true;
      return undefined;
    };
    const shift = await clock.run(workShift(work, 1, hours, clock));
    assert.deepEqual(
      [shift, ended, clock.monotonic() >= 2_100],
      [{ times: [], again: 0, done: 0 }, true, true],
    );
  });

  it("tells each worker which piece of work it is", async () => {
    const clock = new SteppingClock();
    const seen: string[] = [];
    const work = async (worker: number, n: number) => {
      seen.push(`${worker}-${n}`);
      await clock.sleep(600);
      return 0;
    };
    await clock.run(workShift(work, 2, hours, clock));
    assert.deepEqual(seen, ["0-0", "1-0", "0-1", "1-1"]);
  });

  it("fails with what a worker failed with", async () => {
    const clock = new SteppingClock();
    const work = async () => {
      throw new Error("refused");
    };
    await assert.rejects(clock.run(workShift(work, 1, hours, clock)), new Error("refused"));
  });
});
