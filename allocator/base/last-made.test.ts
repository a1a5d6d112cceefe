// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LastMade } from "./last-made.ts";

describe("what was made last", () => {
  const made: string[] = [];
  const last = new LastMade<string>(2);
  const of = (key: string, version: string) =>
    last.of(key, version, () => {
      made.push(`${key}${version}`);
      return `${key}${version}`;
    });

  it("is made anew of another version, and where others have been used since", () => {
    assert.deepEqual([of("a", "1"), of("a", "1"), of("a", "2")], ["a1", "a1", "a2"]);
    assert.deepEqual(made, ["a1", "a2"]);
    assert.deepEqual([of("b", "1"), of("a", "2"), of("c", "1")], ["b1", "a2", "c1"]);
    assert.deepEqual([of("a", "2"), of("c", "1"), of("b", "1")], ["a2", "c1", "b1"]);
    assert.deepEqual(made, ["a1", "a2", "b1", "c1", "b1"]);
  });
});
