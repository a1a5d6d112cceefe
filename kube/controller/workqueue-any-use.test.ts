// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { runsOf } from "../../test/support/runs.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { DONE, type Outcome, WorkQueue } from "./workqueue.ts";

type Step =
  | { readonly verb: "add" | "later"; readonly key: string; readonly ms: number }
  /** Time passes, or some promises are settled alone. */
  | { readonly verb: "pass" | "turn"; readonly ms: number };

const anyKey = fc.constantFrom("a", "b", "c");
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ verb: fc.constant("add" as const), key: anyKey, ms: fc.constant(0) }),
  fc.record({
    verb: fc.constant("later" as const),
    key: anyKey,
    ms: fc.constantFrom(0, 1, 5, 100, 10_000_000),
  }),
  fc.record({ verb: fc.constant("pass" as const), ms: fc.constantFrom(0, 1, 4, 100, 10_000_000) }),
  fc.record({ verb: fc.constant("turn" as const), ms: fc.constantFrom(0, 1, 2) }),
);
const RETRY: Outcome = { kind: "retry", cause: "broken" };
const anyOutcome = fc.constantFrom<Outcome>(DONE, DONE, { kind: "again", afterMs: 3 }, RETRY);

/** A queue, and when its keys are due at the latest. */
class Watched {
  readonly clock = new ManualClock();
  readonly due = new Map<string, number>();
  readonly queue: WorkQueue;
  readonly #outcomes: Outcome[];

  constructor(outcomes: readonly Outcome[], isSlow: boolean) {
    this.#outcomes = [...outcomes];
    const work = async (key: string) => {
      this.due.delete(key);
      if (isSlow) await eventLoopTurns(1);
      return this.#outcomes.shift() ?? DONE;
    };
    const random = { fraction: () => 0.5 };
    this.queue = new WorkQueue({
      name: "test",
      work,
      clock: this.clock,
      random,
      log: noopLogger,
      concurrency: 2,
    });
  }

  async take(step: Step): Promise<void> {
    if ("key" in step) {
      this.#add(step.verb, step.key, step.ms);
    } else if (step.verb === "turn") {
      for (let n = 0; n < step.ms; n++) await Promise.resolve();
    } else {
      this.clock.advance(step.ms);
      await eventLoopTurns(15);
      const late = [...this.due].filter(([, at]) => at <= this.clock.monotonic());
      assert.deepEqual(late, [], "it is due, and nobody has looked at it");
    }
  }

  #add(verb: "add" | "later", key: string, ms: number): void {
    const due = this.clock.monotonic() + ms;
    this.due.set(key, Math.min(this.due.get(key) ?? Number.POSITIVE_INFINITY, due));
    if (verb === "add") this.queue.add(key);
    else this.queue.addAfter(key, ms);
  }
}

describe("WorkQueue, however it is used", () => {
  it("works on each key when it is due, and has no timer when nothing is", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyStep, { maxLength: 25 }),
        fc.array(anyOutcome, { maxLength: 8 }),
        fc.boolean(),
        async (steps, outcomes, isSlow) => {
          const watched = new Watched(outcomes, isSlow);
          const { clock, queue } = watched;
          const stop = new AbortController();
          const running = queue.run(stop.signal);
          for (const step of steps) await watched.take(step);
          for (let n = 0; n < 30; n++) await watched.take({ verb: "pass", ms: 1_000_000 });
          assert.deepEqual([[...watched.due], queue.size, clock.sleeping], [[], 0, 0]);
          stop.abort();
          await running;
        },
      ),
      { numRuns: runsOf(100) },
    );
  });
});
