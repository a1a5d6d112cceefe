// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { createClock } from "./clock.ts";

describe("clock", () => {
  it("tells the wall clock in whole milliseconds", () => {
    const before = Date.now();
    const now = createClock().now();
    assert.ok(now >= before && now <= Date.now());
    assert.ok(Number.isInteger(now));
  });

  it("never goes back, and counts as every process of the host does", () => {
    const clock = createClock();
    const other = createClock();
    let last = clock.monotonic();
    for (let i = 0; i < 1000; i++) {
      const next = (i % 2 === 0 ? other : clock).monotonic();
      assert.ok(next >= last);
      last = next;
    }
  });

  it("sleeps at least as long as it is asked to", async () => {
    const clock = createClock();
    const before = clock.monotonic();
    await clock.sleep(15);
    // a timer may fire up to 1 ms early, because it counts whole milliseconds
    assert.ok(clock.monotonic() - before >= 14);
  });

  it("wakes when the signal aborts, without rejecting, and leaves no listener behind", async () => {
    const controller = new AbortController();
    const asleep = createClock().sleep(3_600_000, controller.signal);
    assert.equal(getEventListeners(controller.signal, "abort").length, 1);
    controller.abort(new Error("stop"));
    await asleep;
    assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  });

  it("leaves no listener behind when it sleeps to the end", async () => {
    const controller = new AbortController();
    await createClock().sleep(1, controller.signal);
    assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  });

  it("does not sleep at all when the signal is aborted already", async () => {
    await createClock().sleep(3_600_000, AbortSignal.abort());
  });

  it("rings when it is time, and not when it was stopped before", async () => {
    const clock = createClock();
    const rung: string[] = [];
    clock.alarm?.(1, () => rung.push("stopped"))();
    await new Promise<void>((resolve) => {
      clock.alarm?.(2, () => {
        rung.push("rang");
        resolve();
      });
    });
    assert.deepEqual(rung, ["rang"]);
  });

  it("rings at once when the time was over before, and warns of nothing", async () => {
    const warnings: string[] = [];
    const heard = ({ message }: Error) => warnings.push(message);
    process.on("warning", heard);
    await new Promise<void>((resolve) => createClock().alarm?.(-5, resolve));
    process.off("warning", heard);
    assert.deepEqual(warnings, []);
  });

  for (const ms of [0, -5, Number.NaN]) {
    it(`returns soon from sleep(${ms})`, async () => {
      await createClock().sleep(ms);
    });
  }

  it("does not ring at once when the time is longer than a timer can count", async () => {
    let rung = false;
    const stop = createClock().alarm?.(2 ** 40, () => {
      rung = true;
    });
    await createClock().sleep(20);
    stop?.();
    assert.equal(rung, false);
  });

  for (const ms of [2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY]) {
    it(`still sleeps after a moment when asked for ${ms} ms`, async () => {
      const controller = new AbortController();
      let awake = false;
      const asleep = createClock()
        .sleep(ms, controller.signal)
        .then(() => {
          awake = true;
        });
      await createClock().sleep(20);
      assert.equal(awake, false);
      controller.abort();
      await asleep;
    });
  }
});
