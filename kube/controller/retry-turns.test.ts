// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { RetryTurns } from "./retry-turns.ts";
import { type Outcome, WorkQueue } from "./workqueue.ts";

describe("RetryTurns", () => {
  const taken = (turns: RetryTurns, now: number): string[] => {
    const keys: string[] = [];
    for (let key = turns.take(now); key !== undefined; key = turns.take(now)) keys.push(key);
    return keys;
  };

  /** Whose burst is used up, at 0. */
  const busy = (): RetryTurns => {
    const turns = new RetryTurns();
    for (let n = 0; n < 100; n++) turns.enter(`before/${n}`);
    assert.equal(taken(turns, 0).length, 100);
    return turns;
  };

  it("are ten a second after a burst of a hundred", () => {
    const turns = busy();
    assert.equal(turns.soonest(), Number.POSITIVE_INFINITY);
    for (let n = 0; n < 200; n++) turns.enter(`shop/${n}`);
    assert.deepEqual([turns.take(99), turns.soonest(), turns.size], [undefined, 100, 200]);
    assert.equal(taken(turns, 1_000).length, 10);
    assert.equal(taken(turns, 100_000).length, 100);
  });

  it("go round the namespaces, and in each to what waits longest", () => {
    const turns = busy();
    for (const key of ["a/1", "a/2", "apps/v1 StatefulSet a/1", "a/3", "b/1", "pools", "a/4", "b/2"])
      turns.enter(key);
    const order = ["a/1", "apps/v1 StatefulSet a/1", "b/1", "pools", "a/2", "b/2", "a/3", "a/4"];
    assert.deepEqual(taken(turns, 1_000), order);
    assert.equal(turns.size, 0);
  });

  it("are not for who has left, and one for who came twice", () => {
    const turns = new RetryTurns();
    for (const key of ["a/1", "a/1", "b/1"]) turns.enter(key);
    turns.leave("b/1");
    turns.leave("c/1");
    assert.deepEqual([turns.size, [...turns.keys()]], [1, ["a/1"]]);
    assert.deepEqual(taken(turns, 0), ["a/1"]);
  });
});

describe("a WorkQueue of which a thousand keys of one namespace fail", () => {
  it("tries another's again within a second, however long they have failed", async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const worked: string[] = [];
    const left = new Map<string, number>(); // key -> how often it fails
    const queue = new WorkQueue({
      ...{ name: "test", clock, random: { fraction: () => 1 }, log: noopLogger, concurrency: 100 },
      work: async (key): Promise<Outcome> => {
        worked.push(key);
        const failures = left.get(key) ?? 0;
        left.set(key, failures - 1);
        return failures > 0 ? { kind: "retry", cause: "no" } : { kind: "done" };
      },
    });
    const running = queue.run(stop.signal);
    const pass = async (ms: number) => {
      for (let step = 0; step < ms; step += 100) {
        clock.advance(100);
        await eventLoopTurns();
      }
    };
    const bad = Array.from({ length: 1_000 }, (_, n) => `bad/${n}`);
    for (const key of bad) {
      left.set(key, 1_000);
      queue.add(key);
    }
    await eventLoopTurns(100);
    await pass(60_000);
    const before = worked.length;
    left.set("shop/db", 3);
    queue.add("shop/db");
    await pass(1_000);
    assert.equal(worked.slice(before).filter((key) => key === "shop/db").length, 4);
    assert.ok(worked.length - before > 8, "and theirs meanwhile");
    assert.equal(queue.size, 1_000);
    stop.abort();
    await running;
  });
});
