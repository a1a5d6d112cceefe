// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { AsyncResource } from "node:async_hooks";
import { it } from "node:test";

it("node's runner follows no promise in a test", async () => {
  await null;
  const next = () => new AsyncResource("a number").asyncId();
  const before = next();
  // what is followed takes the next number
  const all = Array.from({ length: 10 }, async () => {});
  assert.equal(next() - before, 1);
  await Promise.all(all);
});
