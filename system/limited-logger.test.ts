// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type LogFields, noopLogger } from "../allocator/base/ports.ts";
import { limitedLogger } from "./limited-logger.ts";
import { ManualClock } from "./testing/manual-clock.ts";

describe("limited logger", () => {
  it("writes so many lines of a message in a time, and then says how many it left out", () => {
    const clock = new ManualClock();
    const lines: [string, LogFields | undefined][] = [];
    const warn = (message: string, fields?: LogFields) => void lines.push([message, fields]);
    const log = limitedLogger({ ...noopLogger, warn }, clock, { lines: 2, ms: 1_000 });
    for (let i = 0; i < 100; i++) log.warn("bad", { count: i });
    log.warn("other");
    assert.deepEqual(lines.splice(0), [
      ["bad", { count: 0 }],
      ["bad", { count: 1 }],
      ["other", undefined],
    ]);
    clock.advance(1_000);
    log.warn("bad", { count: 100 });
    log.warn("other");
    assert.deepEqual(lines, [
      ["bad", { count: 100, leftOut: 98 }],
      ["other", undefined],
    ]);
  });

  it("lets everything else pass", () => {
    let lines = 0;
    const countLine = () => void lines++;
    const log = limitedLogger({ ...noopLogger, info: countLine, debug: countLine }, new ManualClock(), {
      lines: 1,
      ms: 1_000,
    });
    for (let i = 0; i < 10; i++) {
      log.info("told");
      log.debug("told");
    }
    assert.equal(lines, 20);
  });
});
