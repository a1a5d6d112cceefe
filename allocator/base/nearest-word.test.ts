// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { nearestWord } from "./nearest-word.ts";

const WORDS = ["apply", "check", "explain", "get", "release", "reserve"];

for (const [text, word] of [
  ["aply", "apply"],
  ["APPLY", "apply"],
  ["chekc", "check"],
  ["gte", "get"],
  ["relase", "release"],
  ["explian", "explain"],
  ["version", undefined],
  ["", undefined],
] as const) {
  it(`takes ${JSON.stringify(text)} for ${word}`, () => {
    assert.equal(nearestWord(text, WORDS), word);
  });
}

it("prefers the word with fewer letters changed", () => {
  assert.equal(nearestWord("reserv", ["release", "reserve"]), "reserve");
});
