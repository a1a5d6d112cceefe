// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { exposed } from "../../../test/support/exposed.ts";
import { BindingMetrics } from "./metrics.ts";

function open() {
  const { metrics, of } = exposed();
  const clock = new ManualClock();
  return { meter: new BindingMetrics(clock, metrics), clock, of };
}

describe("BindingMetrics", () => {
  it("times a pod from its first look to its binding, through all that was in the way", async () => {
    const { meter, clock, of } = open();
    meter.scheduled("shop/a", "u1");
    meter.blocked("shop/a", "CLAIM_BUSY");
    clock.advance(4_000);
    meter.scheduled("shop/a", "u1");
    meter.bound("shop/a", "u1");
    assert.deepEqual(await of("berth_binding_delay_seconds_sum"), ["4"]);
    assert.deepEqual(await of("berth_binding_delay_seconds_count"), ["1"]);
  });

  it("begins anew for another pod of the name", async () => {
    const { meter, clock, of } = open();
    meter.scheduled("shop/a", "u1");
    clock.advance(4_000);
    meter.scheduled("shop/a", "u2");
    clock.advance(1_000);
    meter.bound("shop/a", "u2");
    assert.deepEqual(await of("berth_binding_delay_seconds_sum"), ["1"]);
  });

  it("counts who waits by what is in the way, until nothing is", async () => {
    const { meter, of } = open();
    meter.blocked("shop/a", "CLAIM_BUSY");
    meter.blocked("shop/b", "CLAIM_BUSY");
    meter.blocked("shop/c", "CLAIM_MISSING");
    assert.deepEqual(await of("berth_pods_waiting"), ['{code="CLAIM_BUSY"} 2', '{code="CLAIM_MISSING"} 1']);
    for (const key of ["shop/a", "shop/b", "shop/c"]) meter.forget(key);
    assert.deepEqual(await of("berth_pods_waiting"), []);
  });
});
