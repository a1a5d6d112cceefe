// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Agenda } from "./agenda.ts";

interface Step {
  readonly key: string;
  readonly at: number;
  readonly verb: "set" | "take" | "delete";
}

/** Does the same to both, and compares what they say. */
function step(agenda: Agenda, model: Map<string, number>, { key, at, verb }: Step): void {
  if (verb === "take") {
    const soonest = Math.min(...model.values());
    const taken = agenda.take(at);
    assert.equal(model.get(taken ?? ""), soonest <= at ? soonest : undefined);
    model.delete(taken ?? "");
    return;
  }
  agenda.delete(key);
  model.delete(key);
  if (verb === "delete") return;
  agenda.set(key, at);
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
        const agenda = new Agenda();
        const model = new Map<string, number>(); // key -> when it is due
        for (const one of steps) {
          step(agenda, model, one);
          assert.deepEqual([...agenda.keys()].sort(), [...model.keys()].sort());
          assert.equal(agenda.soonest(), Math.min(...model.values()));
          assert.equal(agenda.of(one.key), model.get(one.key) ?? Number.POSITIVE_INFINITY);
        }
      }),
    );
  });

  it("takes another moment in place of the one before, sooner or later", () => {
    const agenda = new Agenda();
    for (const due of [5, 9, 2, 7]) agenda.set("a", due);
    assert.deepEqual(
      [agenda.size, agenda.take(6), agenda.take(7), agenda.take(9)],
      [1, undefined, "a", undefined],
    );
  });
});
