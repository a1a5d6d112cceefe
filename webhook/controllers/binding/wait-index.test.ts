// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { WaitIndex } from "./wait-index.ts";

describe("Waiters", () => {
  it("names exactly the pods that wait for a claim", () => {
    const waiters = new WaitIndex();
    waiters.wait("shop/a", ["shop/one", "shop/two"]);
    waiters.wait("shop/b", ["shop/two"]);
    assert.deepEqual(waiters.of("shop/one"), ["shop/a"]);
    assert.deepEqual(waiters.of("shop/two"), ["shop/a", "shop/b"]);
    assert.deepEqual(waiters.of("shop/three"), []);
    assert.deepEqual(waiters.all(), ["shop/a", "shop/b"]);
  });

  it("knows only what a pod waits for now", () => {
    const waiters = new WaitIndex();
    waiters.wait("shop/a", ["shop/one"]);
    waiters.wait("shop/a", ["shop/two"]);
    assert.deepEqual([waiters.of("shop/one"), waiters.of("shop/two")], [[], ["shop/a"]]);
    waiters.forget("shop/a");
    waiters.forget("shop/a");
    assert.deepEqual(waiters.of("shop/two"), []);
  });
});
