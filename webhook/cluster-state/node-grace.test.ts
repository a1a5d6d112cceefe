// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { NodeAbsences } from "./node-grace.ts";

describe("NodeAbsences", () => {
  it("counts from when a node was first seen absent", () => {
    const clock = new ManualClock();
    const absences = new NodeAbsences(clock);
    assert.equal(absences.absent("a"), false);
    clock.advance(44_999);
    assert.deepEqual([absences.absent("a"), absences.absent("b")], [false, false]);
    clock.advance(1);
    assert.deepEqual([absences.absent("a"), absences.absent("b")], [true, false]);
  });

  it("begins anew once the node was there", () => {
    const clock = new ManualClock();
    const absences = new NodeAbsences(clock);
    absences.absent("a");
    clock.advance(45_000);
    absences.present("a");
    assert.equal(absences.absent("a"), false);
    clock.advance(45_000);
    assert.equal(absences.absent("a"), true);
  });

  it("begins when a node goes that the watch shows, whatever an answer has said that was read late", () => {
    const clock = new ManualClock();
    const absences = new NodeAbsences(clock);
    const shown = new Map<string, object>();
    let heard: (name: string, now: unknown) => void = () => {};
    const onChange = (handler: typeof heard) => {
      heard = handler;
      return () => {};
    };
    absences.follow({ get: (name) => shown.get(name), onChange });
    shown.set("a", {});
    heard("a", {});
    assert.equal(absences.absent("a"), false, "the API server had none, before the node came again");
    clock.advance(3_600_000);
    assert.equal(absences.absent("a"), false, "it has none, and the watch does not tell of that yet");
    shown.delete("a");
    heard("a", undefined);
    assert.equal(absences.absent("a"), false);
    clock.advance(45_000);
    assert.equal(absences.absent("a"), true);
  });

  it("forgets the oldest of very many: their grace begins anew", () => {
    const clock = new ManualClock();
    const absences = new NodeAbsences(clock);
    for (let n = 0; n <= 10_000; n++) absences.absent(`node-${n}`);
    clock.advance(45_000);
    assert.deepEqual([absences.absent("node-1"), absences.absent("node-0")], [true, false]);
  });
});
