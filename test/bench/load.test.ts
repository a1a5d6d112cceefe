// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { closedLoop, openLoop } from "./load.ts";

describe("closedLoop", () => {
  it("asks on every line, never twice at once on one", async () => {
    const busy = new Set<number>();
    const seen = new Set<number>();
    let answers = 0;
    const { rate, seconds } = await closedLoop(
      async (line) => {
        assert.ok(!busy.has(line));
        busy.add(line);
        seen.add(line);
        await pause(2);
        busy.delete(line);
        answers++;
      },
      3,
      60,
    );
    assert.deepEqual([...seen].sort(), [0, 1, 2]);
    assert.ok(Math.abs(rate * seconds - answers) < 1e-6);
  });
});

describe("openLoop", () => {
  it("asks as often as it is told to", async () => {
    const times = await openLoop(async () => {}, 2, { perSecond: 500, ms: 100 });
    assert.equal(times.length, 50);
  });

  it("counts the wait for a line that is stuck", async () => {
    const times = await openLoop(() => pause(30), 1, { perSecond: 100, ms: 100 });
    assert.equal(times.length, 10);
    // The last of ten is due after 90 ms and answered after 300.
    assert.ok(Math.max(...times) >= 180, String(Math.max(...times)));
  });

  it("throws what an answer threw, after the others have come", async () => {
    let asked = 0;
    const load = openLoop(
      async () => {
        asked++;
        if (asked === 2) throw new Error("no");
      },
      2,
      { perSecond: 500, ms: 20 },
    );
    await assert.rejects(load, new Error("no"));
    assert.equal(asked, 10);
  });
});
