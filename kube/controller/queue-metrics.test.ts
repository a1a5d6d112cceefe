// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { exposed } from "../../test/support/exposed.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { DONE, type Outcome, WorkQueue } from "./workqueue.ts";

describe("what a work queue tells of itself", () => {
  it("is how many keys wait, for how long, and how looks ended", async () => {
    const { metrics, of } = exposed();
    const clock = new ManualClock();
    const stop = new AbortController();
    const outcomes: Outcome[] = [{ kind: "again", afterMs: 60_000 }, DONE];
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let begun = 0;
    const queue = new WorkQueue({
      ...{ name: "test", clock, random: { fraction: () => 1 }, log: noopLogger, concurrency: 1, metrics },
      work: async () => {
        const i = begun++;
        await gates[i]?.promise;
        return outcomes[i] ?? DONE;
      },
    });
    const running = queue.run(stop.signal);
    queue.add("a");
    queue.add("b");
    await eventLoopTurns();
    clock.advance(3_000);
    assert.deepEqual(await of("berth_queue_keys"), [
      '{queue="test",state="waiting"} 1',
      '{queue="test",state="working"} 1',
      '{queue="test",state="later"} 0',
    ]);
    assert.deepEqual(await of("berth_queue_oldest_seconds"), ['{queue="test"} 3']);
    for (const gate of gates) gate.resolve();
    await eventLoopTurns();
    assert.deepEqual(await of("berth_queue_oldest_seconds"), ['{queue="test"} 0']);
    assert.deepEqual((await of("berth_queue_keys"))[2], '{queue="test",state="later"} 1');
    assert.deepEqual(await of("berth_queue_outcomes_total"), [
      '{queue="test",outcome="again"} 1',
      '{queue="test",outcome="done"} 1',
    ]);
    assert.deepEqual(await of("berth_queue_wait_seconds_sum"), ['{queue="test"} 3']);
    assert.deepEqual(await of("berth_queue_work_seconds_sum"), ['{queue="test"} 3']);
    stop.abort();
    await running;
  });
});
