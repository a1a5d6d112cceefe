// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inParallel } from "./parallel.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("work in parallel", () => {
  it("is on so many items at once and no more, and its results are in the order of the items", async () => {
    let [running, most] = [0, 0];
    const results = await inParallel([5, 1, 4, 2, 3, 0], 3, async (turns) => {
      most = Math.max(most, ++running);
      for (let n = 0; n < turns; n++) await turn();
      running--;
      return turns;
    });
    assert.deepEqual([results, most, running], [[5, 1, 4, 2, 3, 0], 3, 0]);
    assert.deepEqual(await inParallel([], 3, turn), []);
  });

  it("ends with the first fault, once what is under way has ended, and begins nothing more", async () => {
    const ended: number[] = [];
    const work = inParallel([0, 1, 2, 3], 2, async (n) => {
      if (n === 0) throw new Error("first");
      await turn();
      ended.push(n);
    });
    await assert.rejects(work, /first/);
    assert.deepEqual(ended, [1]);
  });
});
