// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { keepCompiledCode } from "./compile-cache.ts";

describe("what an agent has compiled", () => {
  it("is written once, when it has served for a minute", async () => {
    const clock = new ManualClock();
    let written = 0;
    const kept = keepCompiledCode({ clock, signal: new AbortController().signal }, () => void written++);
    await clock.advance(59_999);
    assert.equal(written, 0);
    await clock.advance(1);
    await kept;
    assert.equal(written, 1);
  });

  it("is left to Node.js where the agent ends before", async () => {
    const clock = new ManualClock();
    const end = new AbortController();
    const kept = keepCompiledCode({ clock, signal: end.signal }, () => assert.fail("written"));
    end.abort();
    await kept;
  });
});
