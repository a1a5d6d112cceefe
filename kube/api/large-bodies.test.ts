// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { LargeBodies } from "./large-bodies.ts";

const LARGE = Buffer.alloc(200 * 1024);

describe("bodies of answers", () => {
  /** A body that has begun with so much, and how its reading ended. */
  function begun(bodies: LargeBodies, first: Buffer, mostBytes?: number) {
    const body = new PassThrough();
    const read = { body, done: false, bytes: undefined as number | undefined, failed: false };
    bodies.read(body as unknown as IncomingMessage, mostBytes).then(
      (all) => Object.assign(read, { done: true, bytes: all?.length }),
      () => Object.assign(read, { done: true, failed: true }),
    );
    body.write(first);
    return read;
  }

  it("are read eight at a time, if they are large, and any number of small ones beside", async () => {
    const bodies = new LargeBodies(new ManualClock());
    const large = Array.from({ length: 11 }, () => begun(bodies, LARGE));
    await eventLoopTurns();
    for (const { body } of large) body.end("x");
    const small = begun(bodies, Buffer.from("{}"));
    small.body.end();
    await eventLoopTurns();
    assert.deepEqual([small.done, small.bytes], [true, 2]);
    assert.ok(large.every(({ done, bytes }) => done && bytes === LARGE.length + 1));
  });

  it("wait for others that are not at their end, and go on when these are", async () => {
    const bodies = new LargeBodies(new ManualClock());
    const slow = Array.from({ length: 8 }, () => begun(bodies, LARGE));
    await eventLoopTurns();
    const next = begun(bodies, LARGE);
    await eventLoopTurns();
    next.body.end(LARGE);
    await eventLoopTurns();
    assert.equal(next.done, false);
    slow[0]?.body.end();
    await eventLoopTurns();
    assert.deepEqual([slow[0]?.done, next.done, next.bytes], [true, true, 2 * LARGE.length]);
  });

  it("give their place back when they fail or are too large, and wait no longer than their call", async () => {
    const bodies = new LargeBodies(new ManualClock());
    const slow = Array.from({ length: 8 }, () => begun(bodies, LARGE, 300 * 1024));
    await eventLoopTurns();
    const late = begun(bodies, LARGE);
    await eventLoopTurns();
    late.body.destroy(new Error("too late"));
    await eventLoopTurns();
    assert.deepEqual([late.done, late.failed], [true, true]);
    for (const [n, { body }] of slow.entries()) {
      if (n % 2 === 0) body.destroy(new Error("reset"));
      else body.write(LARGE);
    }
    await eventLoopTurns();
    assert.ok(slow.every(({ done, bytes }) => done && bytes === undefined));
    const all = Array.from({ length: 8 }, () => begun(bodies, LARGE));
    await eventLoopTurns();
    for (const { body } of all) body.end();
    await eventLoopTurns();
    assert.ok(all.every(({ done }) => done));
  });

  it("of which nothing comes keep others waiting for two seconds, and no more than as many again are read beside", async () => {
    const clock = new ManualClock();
    const bodies = new LargeBodies(clock);
    const dead = Array.from({ length: 7 }, () => begun(bodies, LARGE));
    const slow = begun(bodies, LARGE);
    await eventLoopTurns();
    const more = Array.from({ length: 20 }, () => begun(bodies, LARGE));
    await eventLoopTurns();
    clock.advance(1_000);
    slow.body.write("x");
    await eventLoopTurns();
    for (const { body } of more) body.end();
    clock.advance(999);
    await eventLoopTurns();
    assert.equal(more.filter(({ done }) => done).length, 0);
    clock.advance(1);
    await eventLoopTurns();
    assert.ok(more.every(({ done, bytes }) => done && bytes === LARGE.length));
    // what comes after all is taken, and gives no place back twice
    for (const { body } of [...dead, slow]) body.end("x");
    await eventLoopTurns();
    assert.ok([...dead, slow].every(({ done, failed }) => done && !failed));
    const stalled = Array.from({ length: 30 }, () => begun(bodies, LARGE));
    for (let n = 0; n < 5; n++) {
      await eventLoopTurns();
      clock.advance(2_000);
    }
    await eventLoopTurns();
    for (const { body } of stalled) body.write("x");
    await eventLoopTurns();
    assert.equal(stalled.filter(({ body }) => body.readableLength === 0).length, 16);
    for (const { body } of stalled) body.end();
    await eventLoopTurns();
    assert.ok(stalled.every(({ done, bytes }) => done && bytes === LARGE.length + 1));
  });
});
