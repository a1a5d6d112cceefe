// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { DONE, type Outcome, WorkQueue, type WorkQueueOptions } from "./workqueue.ts";

describe("WorkQueue", () => {
  let clock: ManualClock;
  let stop: AbortController;
  let running: Promise<void>;
  /** What was worked on, in order. */
  let worked: string[];

  beforeEach(() => {
    clock = new ManualClock();
    stop = new AbortController();
    worked = [];
    running = Promise.resolve();
  });
  afterEach(async () => {
    stop.abort();
    await running;
  });

  function start(
    work: (key: string, signal: AbortSignal) => Promise<Outcome> | Outcome,
    more: Partial<WorkQueueOptions> = {},
  ): WorkQueue {
    const queue = new WorkQueue({
      name: "test",
      work: async (key, signal) => {
        worked.push(key);
        return await work(key, signal);
      },
      clock,
      random: { fraction: () => 1 },
      log: noopLogger,
      ...more,
    });
    running = queue.run(stop.signal);
    return queue;
  }

  async function after(ms: number): Promise<string[]> {
    clock.advance(ms);
    await eventLoopTurns();
    return worked.splice(0);
  }

  it("sets a timer for what is due later, and none while nothing is", async () => {
    const queue = start(() => DONE);
    queue.add("a");
    assert.deepEqual([await after(0), clock.sleeping], [["a"], 0]);
    queue.addAfter("b", 1_000);
    assert.deepEqual([await after(0), clock.sleeping], [[], 1]);
    queue.add("a");
    assert.deepEqual([await after(0), clock.sleeping], [["a"], 1]);
    assert.deepEqual([await after(1_000), clock.sleeping], [["b"], 0]);
  });

  it("works on what is added just when work ends that had kept it from its turn", async () => {
    const queue = start(() => DONE, { concurrency: 2 });
    const turns = async (count: number) => {
      for (let n = 0; n < count; n++) await Promise.resolve();
    };
    for (let gaps = 0; gaps < 100; gaps++) {
      queue.add("a");
      await turns(gaps % 10);
      queue.add("b");
      await turns(Math.floor(gaps / 10));
      queue.addAfter("a", 0);
      await after(0);
      assert.equal(queue.size, 0, `after ${gaps % 10} and ${Math.floor(gaps / 10)} turns`);
    }
  });

  it("works on a key once, however often it was added", async () => {
    const queue = start(() => DONE);
    for (const key of ["a", "b", "a", "a"]) queue.add(key);
    assert.equal(queue.size, 2);
    assert.deepEqual(await after(0), ["a", "b"]);
    assert.equal(queue.size, 0);
    queue.add("a");
    assert.deepEqual(await after(0), ["a"]);
  });

  it("never works on a key twice at a time, and once more when it was added meanwhile", async () => {
    const gate = Promise.withResolvers<Outcome>();
    const queue = start((key) => (key === "a" && worked.length === 1 ? gate.promise : DONE));
    queue.add("a");
    await eventLoopTurns();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    await eventLoopTurns();
    assert.deepEqual(worked, ["a", "b"]);
    gate.resolve(DONE);
    await eventLoopTurns();
    assert.deepEqual(worked, ["a", "b", "a"]);
  });

  it("works on so many keys at a time and no more", async () => {
    const gates: (() => void)[] = [];
    const hold = () => new Promise<Outcome>((resolve) => gates.push(() => resolve(DONE)));
    const queue = start(hold, { concurrency: 2 });
    for (const key of ["a", "b", "c"]) queue.add(key);
    await eventLoopTurns();
    assert.deepEqual(worked, ["a", "b"]);
    gates[0]?.();
    await eventLoopTurns();
    assert.deepEqual(worked, ["a", "b", "c"]);
    for (const open of gates) open();
  });

  it("waits longer after each failure, and as before after a success", async () => {
    const failing: Outcome = { kind: "retry", cause: new Error("no") };
    let left = 3;
    const queue = start(() => (left-- > 0 ? failing : DONE));
    queue.add("a");
    assert.deepEqual(await after(0), ["a"]);
    assert.deepEqual(await after(4), []);
    assert.deepEqual(await after(1), ["a"]); // 5 ms
    assert.deepEqual(await after(9), []);
    assert.deepEqual(await after(1), ["a"]); // 10 ms
    assert.deepEqual(await after(20), ["a"]); // 20 ms, and done
    left = 1;
    queue.add("a");
    assert.deepEqual(await after(0), ["a"]);
    assert.deepEqual(await after(5), ["a"]);
    assert.equal(queue.size, 0);
  });

  it("waits longer after each failure of work that has several parts", async () => {
    const failing: Outcome = { kind: "retry", cause: new Error("no") };
    let part = 0;
    const queue = start(() => (++part % 2 === 0 ? failing : { kind: "again", afterMs: 0, unfinished: true }));
    queue.add("a");
    assert.deepEqual(await after(0), ["a", "a"]);
    assert.deepEqual(await after(5), ["a", "a"]); // 5 ms
    assert.deepEqual(await after(9), []);
    assert.deepEqual(await after(1), ["a", "a"]); // 10 ms
  });

  it("takes what the work throws for a failure", async () => {
    const queue = start(() => {
      if (worked.length === 1) throw new Error("a defect");
      return DONE;
    });
    queue.add("a");
    await eventLoopTurns();
    clock.advance(5);
    await eventLoopTurns();
    assert.deepEqual(worked, ["a", "a"]);
  });

  it("retries all keys together at a bounded rate", async () => {
    const queue = start(() => ({ kind: "retry", cause: "down" }), { concurrency: 1_000 });
    for (let i = 0; i < 300; i++) queue.add(`key ${i}`);
    assert.equal((await after(0)).length, 300);
    let retried = 0;
    for (let ms = 0; ms < 5_000; ms += 50) retried += (await after(50)).length;
    assert.ok(retried >= 140 && retried <= 155, `${retried}: a burst of 100 and then 10 in a second`);
  });

  it("comes back when it was told to, and at once when something changes before", async () => {
    let outcome: Outcome = { kind: "again", afterMs: 1_000 };
    const queue = start(() => outcome);
    queue.add("a");
    assert.deepEqual(await after(0), ["a"]);
    assert.deepEqual(await after(999), []);
    assert.deepEqual(await after(1), ["a"]);
    queue.add("a");
    outcome = DONE;
    assert.deepEqual(await after(0), ["a"]);
    assert.deepEqual(await after(10_000), []);
  });

  it("keeps the earlier of two moments", async () => {
    const queue = start(() => DONE);
    queue.addAfter("a", 1_000);
    queue.addAfter("a", 100);
    queue.addAfter("a", 5_000);
    assert.equal(queue.size, 1);
    assert.deepEqual(await after(100), ["a"]);
    assert.deepEqual(await after(10_000), []);
  });

  it("leaves alone what a person must correct", async () => {
    const queue = start(() => ({ kind: "rejected", reason: "no such pool" }));
    queue.add("a");
    assert.deepEqual(await after(0), ["a"]);
    assert.deepEqual(await after(100_000), []);
  });

  it("ends with its signal, after what it works on", async () => {
    const gate = Promise.withResolvers<Outcome>();
    let ended = false;
    const queue = start(() => gate.promise);
    queue.add("a");
    await eventLoopTurns();
    stop.abort();
    void running.then(() => {
      ended = true;
    });
    await eventLoopTurns();
    assert.equal(ended, false);
    gate.resolve(DONE);
    await running;
    queue.add("b");
    assert.deepEqual(await after(0), ["a"]);
  });

  it("lets others have their turn when thousands of keys come at once", async () => {
    let turnsLeft = 0;
    const sleep = (ms: number, signal?: AbortSignal) => {
      if (ms === 0) turnsLeft++;
      return clock.sleep(ms, signal);
    };
    const others = { now: () => clock.now(), monotonic: () => clock.monotonic(), sleep };
    const queue = start(() => DONE, { clock: others });
    for (let i = 0; i < 1_600; i++) queue.add(String(i));
    await eventLoopTurns(200);
    assert.equal(worked.length, 1_600);
    assert.deepEqual(worked.slice(0, 3), ["0", "1", "2"], "those that wait longest come first");
    assert.ok(turnsLeft >= 100, `${turnsLeft} times for 1,600 keys`);
  });

  it("is not woken by what is due later than what it waits for", async () => {
    let rests = 0;
    const sleep = (ms: number, signal?: AbortSignal) => {
      rests++;
      return clock.sleep(ms, signal);
    };
    const others = { now: () => clock.now(), monotonic: () => clock.monotonic(), sleep };
    const queue = start(() => DONE, { clock: others });
    queue.addAfter("first", 100);
    await eventLoopTurns();
    const before = rests;
    for (let i = 0; i < 50; i++) queue.addAfter(String(i), 200);
    await eventLoopTurns();
    assert.equal(rests, before);
    assert.deepEqual(await after(100), ["first"]);
    assert.equal((await after(100)).length, 50);
  });
});
