// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  flag,
  list,
  mapOf,
  object,
  oneOf,
  quote,
  text,
  textLike,
  type Validator,
  whole,
} from "./validation.ts";

const port: Validator = object({ name: text(4), number: whole(1, 9), open: flag }, ["number"]);

describe("a shape", () => {
  for (const { shape, value, message } of [
    { shape: text(), value: "a", message: undefined },
    { shape: text(), value: "", message: 'spec.x must be text, not ""' },
    { shape: text(3), value: "abcd", message: "spec.x must have at most 3 characters" },
    { shape: textLike(/^a+$/, "aaa"), value: "aa", message: undefined },
    { shape: textLike(/^a+$/, "aaa"), value: "ab", message: 'spec.x "ab" is not of the form aaa' },
    { shape: textLike(/^a+$/, "aaa"), value: 1, message: "spec.x must be text, not 1" },
    { shape: flag, value: false, message: undefined },
    { shape: flag, value: 0, message: "spec.x must be true or false, not 0" },
    { shape: whole(1, 9), value: 1, message: undefined },
    { shape: whole(1, 9), value: 9, message: undefined },
    { shape: whole(1, 9), value: 10, message: "spec.x must be a whole number from 1 to 9, not 10" },
    { shape: whole(1, 9), value: 0, message: "spec.x must be a whole number from 1 to 9, not 0" },
    { shape: whole(1, 9), value: "5", message: 'spec.x must be a whole number from 1 to 9, not "5"' },
    { shape: whole(1, 9), value: Number.NaN, message: "spec.x must be a whole number from 1 to 9, not NaN" },
    { shape: oneOf("a", "b"), value: "b", message: undefined },
    { shape: oneOf("a", "b"), value: ["a"], message: "spec.x must be one of a, b, not a list" },
    { shape: list(flag, 2), value: [true, false], message: undefined },
    { shape: list(flag, 2), value: [true, 1], message: "spec.x[1] must be true or false, not 1" },
    { shape: list(flag, 2), value: [1, 2, 3], message: "spec.x has 3 entries; at most 2 are allowed" },
    { shape: list(flag, 2), value: { 0: true, length: 1 }, message: "spec.x must be a list, not an object" },
    { shape: mapOf(text(2), flag), value: { a: true }, message: undefined },
    { shape: mapOf(text(2), flag), value: { abc: true }, message: "spec.x must have at most 2 characters" },
    { shape: mapOf(text(2), flag), value: { a: 1 }, message: 'spec.x["a"] must be true or false, not 1' },
    { shape: mapOf(text(2), flag), value: null, message: "spec.x must be an object, not null" },
    { shape: port, value: [], message: "spec.x must be an object, not a list" },
    { shape: port, value: { number: 5, open: true }, message: undefined },
    { shape: port, value: { name: "http" }, message: "spec.x.number is missing" },
    { shape: port, value: { number: 0 }, message: "spec.x.number must be a whole number from 1 to 9, not 0" },
    {
      shape: port,
      value: { nubmer: 5 },
      message: 'spec.x has an unknown field "nubmer"; did you mean number?',
    },
    { shape: port, value: { OPEN: true }, message: 'spec.x has an unknown field "OPEN"; did you mean open?' },
    {
      shape: port,
      value: { mode: 5 },
      message: 'spec.x has an unknown field "mode"; known here: name, number, open',
    },
    {
      shape: port,
      value: { toString: 5 },
      message: 'spec.x has an unknown field "toString"; known here: name, number, open',
    },
    {
      shape: port,
      value: { number: 1, ["n".repeat(10_000)]: 1 },
      message: `spec.x has an unknown field "${"n".repeat(100)}..."; known here: name, number, open`,
    },
    {
      shape: list(port, 2),
      value: [{ number: 1 }, { number: 1, name: "https" }],
      message: "spec.x[1].name must have at most 4 characters",
    },
  ]) {
    it(`${message === undefined ? "accepts" : "refuses"} ${JSON.stringify(value).slice(0, 50)}`, () => {
      const refusal = shape(value, "spec.x");
      assert.equal(refusal?.message, message);
      assert.equal(refusal?.code, message === undefined ? undefined : "POOL_INVALID");
    });
  }
});

describe("quote", () => {
  it("shows plain values, names the others, and cuts and escapes text", () => {
    assert.deepEqual([null, undefined, 1.5, true, [1], { a: 1 }, "a\n"].map(quote), [
      "null",
      "undefined",
      "1.5",
      "true",
      "a list",
      "an object",
      '"a\\n"',
    ]);
    assert.equal(quote("x".repeat(101)), `"${"x".repeat(100)}..."`);
  });
});
