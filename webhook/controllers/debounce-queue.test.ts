// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DebounceQueue } from "./debounce-queue.ts";

describe("keys that settle", () => {
  it("are due once nothing has happened to them for a while, each once", () => {
    const settling = new DebounceQueue(5_000);
    assert.equal(settling.dueAt(), Number.POSITIVE_INFINITY);
    settling.enter("a", 0);
    settling.enter("b", 1_000);
    assert.equal(settling.take(4_999), undefined);
    assert.equal(settling.dueAt(), 5_000);
    settling.enter("a", 4_999);
    assert.equal(settling.dueAt(), 6_000);
    assert.equal(settling.take(6_000), "b");
    assert.equal(settling.take(9_998), undefined);
    assert.equal(settling.take(9_999), "a");
    assert.equal(settling.take(20_000), undefined);
    assert.equal(settling.size, 0);
  });

  it("are left out when they are in order by then", () => {
    const settling = new DebounceQueue(5_000);
    settling.enter("a", 0);
    settling.enterOld("b", 0);
    settling.leave("a");
    settling.leave("b");
    assert.equal(settling.take(9_000), undefined);
    settling.enter("a", 0);
    settling.enterOld("b", 0);
    settling.clear();
    assert.equal(settling.size, 0);
  });

  it("come before those of old, however many these are", () => {
    const settling = new DebounceQueue(5_000);
    for (let i = 0; i < 1000; i++) settling.enterOld(`old-${i}`, 0);
    settling.enter("new", 100);
    assert.equal(settling.take(5_000), "old-0");
    assert.equal(settling.dueAt(), 5_000);
    assert.equal(settling.take(5_100), "new");
    assert.equal(settling.take(5_200), "old-1");
    assert.equal(settling.size, 998);
  });

  it("are of old no longer once something happens to them, and stay so", () => {
    const settling = new DebounceQueue(5_000);
    settling.enterOld("a", 0);
    settling.enter("a", 1_000);
    settling.enterOld("a", 0);
    assert.equal(settling.size, 1);
    assert.equal(settling.take(5_999), undefined);
    assert.equal(settling.take(6_000), "a");
  });
});
