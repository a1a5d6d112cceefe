// SPDX-License-Identifier: Apache-2.0
// What a body may cost whoever decodes it: 50 ms of the event loop for each MiB, and 4 times its size in memory.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { collect } from "../../test/hostile/growth.ts";
import { SIZED_BODIES } from "../../test/hostile/sized-bodies.ts";
import { isFull } from "../../test/support/runs.ts";
import { decode } from "./json.ts";

const MIB = 1024 * 1024;
/** Long enough to be measured, and for what grows with the square of the size to show. */
const SIZE = (isFull ? 2 : 1) * MIB;
/** JSON.parse takes some 5 ms for a MiB of pods, and a test can be on a machine of any speed. */
const MOST_TIME = 10;
const MOST_MEMORY = 4;
/** Beside what values take: pieces of the heap that are half empty. */
const SLACK = 0.25;

/** Of the processor, whatever else the machine does: the least of three times, or the first that is little enough. */
function costOf(work: () => void, enough = 0): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 3 && least >= enough; i++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, user + system);
  }
  return least;
}

function parsed(body: string): void {
  try {
    JSON.parse(Buffer.from(body).toString());
  } catch {
    // takes its time all the same
  }
}

/** As a body has it: in memory of its own. */
function bytesOf(body: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(body));
  bytes.write(body);
  return bytes;
}

function inUse(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe("decoding a body", () => {
  const ordinary = costOf(() => parsed(SIZED_BODIES["a list of pods"]?.(SIZE) ?? ""));

  for (const [name, make] of Object.entries(SIZED_BODIES)) {
    it(`costs no more than its size allows: ${name}`, () => {
      const body = make(SIZE);
      const cost = costOf(() => void decode(bytesOf(body)), MOST_TIME * ordinary);
      const times = cost / ordinary;
      assert.ok(times < MOST_TIME, `${times.toFixed(1)} times what JSON.parse takes for pods of that size`);
    });

    it(`takes no more memory than its size allows: ${name}`, () => {
      const body = make(SIZE);
      const size = Buffer.byteLength(body);
      const before = inUse();
      const held = [decode(bytesOf(body))];
      const values = inUse() - before;
      // while values are made the text that they are made from is there, too
      const whole = values + body.length * (body.includes("€") ? 2 : 1);
      assert.equal(held.length, 1);
      assert.ok(whole < (MOST_MEMORY + SLACK) * size, `${(whole / size).toFixed(1)} times its size`);
    });
  }
});
