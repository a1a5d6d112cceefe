// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "../../test/support/any-character.ts";
import { fitWarnings } from "./warnings.ts";

describe("warnings", () => {
  for (const { name, given, expected } of [
    { name: "passes short ones on", given: ["pool db is nearly full"], expected: ["pool db is nearly full"] },
    { name: "makes one line", given: ["a\n\tb\u2028c\u0000d"], expected: ["a b c d"] },
    { name: "drops empty ones and repetitions", given: ["", "a", "\n", "a", " a "], expected: ["a"] },
    { name: "mends half a surrogate pair", given: ["a\ud83d"], expected: ["a\ufffd"] },
    { name: "keeps 256 bytes", given: ["x".repeat(256)], expected: ["x".repeat(256)] },
    { name: "cuts 257 bytes", given: ["x".repeat(257)], expected: [`${"x".repeat(253)}...`] },
    {
      name: "cuts between characters",
      given: ["\u{1f6a2}".repeat(65)],
      expected: [`${"\u{1f6a2}".repeat(63)}...`],
    },
  ]) {
    it(name, () => assert.deepEqual(fitWarnings(given), expected));
  }

  it("keeps 16 warnings of full length and drops the rest", () => {
    const given = Array.from({ length: 30 }, (_, i) => `${String(i).padStart(2, "0")}${"x".repeat(300)}`);
    assert.deepEqual(
      fitWarnings(given).map((warning) => warning.slice(0, 2)),
      Array.from({ length: 16 }, (_, i) => String(i).padStart(2, "0")),
    );
  });

  it("holds for any text: valid, one line, 256 bytes each and 4096 together", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: anyCharacter, maxLength: 600 }), { maxLength: 40 }), (given) => {
        const warnings = fitWarnings(given);
        const sizes = warnings.map((warning) => Buffer.byteLength(warning));
        assert.ok(warnings.every((warning) => warning.isWellFormed() && !/\p{Cc}/u.test(warning)));
        assert.ok(sizes.every((size) => size > 0 && size <= 256));
        assert.ok(sizes.reduce((a, b) => a + b, 0) <= 4096);
        assert.equal(new Set(warnings).size, warnings.length);
      }),
    );
  });
});
