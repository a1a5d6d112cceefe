// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";

const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;
const LAST = 0x10ffff;

/**
 * Any character of Unicode, as a unit of `fc.string`. The one that is built in, `binary`, gives the same, and first makes a
 * table of all 1.1 million of them: more work than most files of tests have, and all later ones of the process have its heap.
 */
export const anyCharacter: fc.Arbitrary<string> = fc.nat(LAST - SURROGATES).map(characterAt, placeOf);

function characterAt(place: number): string {
  return String.fromCodePoint(place < FIRST_SURROGATE ? place : place + SURROGATES);
}

/** With it fast-check sees that its dangerous texts, `__proto__` for one, can be among the strings, and tries them. */
function placeOf(value: unknown): number {
  const code = typeof value === "string" ? value.codePointAt(0) : undefined;
  if (code === undefined || String.fromCodePoint(code) !== value || !value.isWellFormed())
    throw new TypeError("it is no single character");
  return code < FIRST_SURROGATE ? code : code - SURROGATES;
}
