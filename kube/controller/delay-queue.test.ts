// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { DelayQueue } from "./delay-queue.ts";

interface Step {
  readonly key: string;
  readonly at: number;
  readonly verb: "set" | "take" | "delete";
}

/** Does the same to both, and compares what they say. */
function step(delayQueue: DelayQueue, model: Map<string, number>, { key, at, verb }: Step): void {
  if (verb === "take") {
    const soonest = Math.min(...model.values());
    const taken = delayQueue.take(at);
    assert.equal(model.get(taken ?? ""), soonest <= at ? soonest : undefined);
    model.delete(taken ?? "");
    return;
  }
  delayQueue.delete(key);
  model.delete(key);
  if (verb === "delete") return;
  delayQueue.set(key, at);
  model.set(key, at);
}

describe("Agenda", () => {
  it("gives keys as they are due, whatever was appointed and taken back before", () => {
    const anyStep: fc.Arbitrary<Step> = fc.record({
      key: fc.nat(7).map(String),
      at: fc.nat(20),
      verb: fc.constantFrom("set", "set", "set", "take", "delete"),
    });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 80 }), (steps) => {
        const delayQueue = new DelayQueue();
        const model = new Map<string, number>(); // key -> when it is due
        for (const one of steps) {
          step(delayQueue, model, one);
          assert.deepEqual([...delayQueue.keys()].sort(), [...model.keys()].sort());
          assert.equal(delayQueue.soonest(), Math.min(...model.values()));
          assert.equal(delayQueue.of(one.key), model.get(one.key) ?? Number.POSITIVE_INFINITY);
        }
      }),
    );
  });

  it("takes another moment in place of the one before, sooner or later", () => {
    const delayQueue = new DelayQueue();
    for (const due of [5, 9, 2, 7]) delayQueue.set("a", due);
    assert.deepEqual(
      [delayQueue.size, delayQueue.take(6), delayQueue.take(7), delayQueue.take(9)],
      [1, undefined, "a", undefined],
    );
  });
});
