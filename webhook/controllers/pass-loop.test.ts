// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopMetrics } from "../../allocator/base/ports.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { openWorld } from "../../test/support/world.ts";
import { type Passes, PassLoop } from "./pass-loop.ts";

/** A loop on a clock that the test moves, whose passes take as long as the test says. */
async function started(tookMs: () => number) {
  const clock = new ManualClock();
  const world = await openWorld({ clock });
  const began: number[] = []; // seconds at which passes began
  const state = { hasWork: true, leads: true };
  const handlers = new Set<() => void>();
  const passes: Passes = {
    name: "test",
    knows: () => true,
    hasWork: () => state.hasWork,
    forget() {},
    async pass() {
      began.push(clock.monotonic() / 1_000);
      const ms = tookMs();
      clock.advance(ms);
      return 20 * ms;
    },
  };
  const leadership = { leads: () => state.leads, onGain: () => () => {} };
  const loop = new PassLoop({ context: world.context, leadership, metrics: noopMetrics }, passes);
  const controller = loop.start([
    (soon) => {
      handlers.add(soon);
      return () => handlers.delete(soon);
    },
  ]);
  const close = async () => {
    await controller.close();
    await world[Symbol.asyncDispose]();
  };
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      await eventLoopTurns(5);
      clock.advance(100);
    }
    await eventLoopTurns(5);
  };
  const change = () => {
    for (const soon of handlers) soon();
  };
  return { began, state, pass, change, [Symbol.asyncDispose]: close };
}

describe("passes", () => {
  it("come every 5 s, and soon after a change once the last one has rested", async () => {
    await using loop = await started(() => 100);
    await loop.pass(11_000);
    assert.deepEqual(loop.began, [0.2, 5.3, 10.4]);
    loop.change();
    await loop.pass(3_000);
    assert.deepEqual(loop.began.slice(3), [12.5]);
  });

  it("rest for no longer than 5 s after one during which the process stood still, be there nothing to do meanwhile", async () => {
    let tookMs = 25_000;
    await using loop = await started(() => tookMs);
    await loop.pass(300);
    tookMs = 0;
    loop.state.hasWork = false;
    await loop.pass(6_000);
    assert.equal(loop.began.length, 1);
    loop.state.hasWork = true;
    loop.change();
    await loop.pass(300);
    assert.equal(loop.began.length, 2);
  });

  it("begin soon where this replica has come to lead again", async () => {
    let tookMs = 1_000;
    await using loop = await started(() => tookMs);
    await loop.pass(300);
    tookMs = 0;
    loop.state.leads = false;
    await loop.pass(6_000);
    loop.state.leads = true;
    loop.change();
    await loop.pass(300);
    assert.equal(loop.began.length, 2);
  });
});
