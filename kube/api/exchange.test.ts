// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Exchange } from "./exchange.ts";

describe("Exchange", () => {
  const part = (name: string, log: string[]) => ({
    destroy: ({ message }: Error) => log.push(`${name}: ${message}`),
  });

  it("breaks off what it waits for, and whatever it would wait for next", () => {
    const log: string[] = [];
    const exchange = new Exchange();
    exchange.waitsFor(part("request", log));
    exchange.waitsFor(part("answer", log));
    exchange.breakOff(new Error("late"));
    exchange.waitsFor(part("more", log));
    assert.deepEqual(log, ["answer: late", "more: late"]);
  });

  it("keeps the first reason", () => {
    const log: string[] = [];
    const exchange = new Exchange();
    exchange.breakOff(new Error("late"));
    exchange.breakOff(new Error("closed"));
    exchange.waitsFor(part("request", log));
    assert.deepEqual(log, ["request: late"]);
  });
});
