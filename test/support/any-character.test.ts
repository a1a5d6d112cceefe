// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "./any-character.ts";

/** Asked as fast-check asks whether its dangerous texts can be among the strings, and before it makes a text shorter. */
function isPossible(text: string): boolean {
  return fc.string({ unit: anyCharacter }).canShrinkWithoutContext(text);
}

describe("anyCharacter", () => {
  it("is every one of Unicode, and no half of one", () => {
    for (const text of ["\0", "a", "\ud7ff", "\ue000", "\uffff", "\u{10000}", "\u{10ffff}"])
      assert.ok(isPossible(text), JSON.stringify(text));
    for (const half of ["\ud800", "\udfff", "a\udc00"]) assert.ok(!isPossible(half), JSON.stringify(half));
    fc.assert(fc.property(anyCharacter, (one) => one.isWellFormed() && [...one].length === 1));
  });

  it("makes strings among which fast-check tries its dangerous ones", () => {
    for (const text of ["", "__proto__", "toString", "constructor"]) assert.ok(isPossible(text), text);
    const tried = fc.sample(fc.string({ unit: anyCharacter, minLength: 5 }), { numRuns: 2_000, seed: 1 });
    assert.ok(tried.some((text) => text.includes("__proto__") || text.includes("toString")));
  });
});
