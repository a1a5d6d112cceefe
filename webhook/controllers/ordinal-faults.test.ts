// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { OrdinalFaults } from "./ordinal-faults.ts";

describe("the faults that a workload's ordinals meet", () => {
  let clock: ManualClock;
  let faults: OrdinalFaults;
  beforeEach(() => {
    clock = new ManualClock();
    faults = new OrdinalFaults(clock);
  });

  it("last once they have met them for a minute", () => {
    assert.equal(faults.met("db", true, undefined), false);
    clock.advance(59_999);
    assert.equal(faults.met("db", true, undefined), false);
    assert.equal(faults.met("other", true, undefined), false);
    clock.advance(1);
    assert.equal(faults.met("db", true, undefined), true);
    assert.equal(faults.met("other", true, undefined), false);
  });

  it("begin anew after a walk without those that pass by themselves", () => {
    faults.met("db", true, undefined);
    clock.advance(60_000);
    assert.equal(faults.met("db", false, undefined), false);
    assert.equal(faults.met("db", true, undefined), false);
  });

  it("say where the next walk begins, if they cut the last one short", () => {
    assert.equal(faults.next("db"), undefined);
    faults.met("db", true, 5);
    assert.equal(faults.next("db"), 5);
    faults.met("db", true, undefined);
    assert.equal(faults.next("db"), undefined);
    faults.met("db", false, 10);
    faults.over("db");
    assert.equal(faults.next("db"), undefined);
  });
});
