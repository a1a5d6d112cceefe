// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { anyCharacter } from "../support/any-character.ts";
import { runsOf } from "../support/runs.ts";

/** Texts that have broken something somewhere. */
export const EVIL_TEXTS: readonly string[] = [
  "",
  " ",
  "\0",
  "a\r\nb",
  "../../../etc/passwd",
  "/etc/passwd",
  "..",
  "a".repeat(70_000),
  "\u202e",
  "\ud800",
  "\u{1f6a2}",
  "__proto__",
  "constructor",
  "toString",
  "10.20.0.70",
  "10.20.0.70/24",
  "10.20.0.70,10.20.0.71,fd00::1",
  "10.20.0.0-10.20.255.255",
  "::ffff:10.20.0.70",
  "fe80::1%eth0",
  "0x0a140046",
  "010.020.000.070",
  "0.0.0.0/0",
  "::/0",
  "NaN",
  "1e400",
  "-1",
  "'; DROP TABLE records; --",
  "%s%n",
  "not found",
  "no such file or directory",
  "null",
  "[]",
  "{}",
];

/** Values of the wrong type, or of the right one and out of all bounds. */
export const WRONG_VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  Number.MAX_SAFE_INTEGER,
  "",
  "x",
  "\0",
  "../../etc/passwd",
  "a".repeat(70_000),
  [],
  [[]],
  [null],
  ["x", 1, {}],
  {},
  { "": "" },
  { __proto__: null, constructor: 1 },
];

export const evilText = fc.oneof(
  fc.constantFrom(...EVIL_TEXTS),
  fc.string({ unit: anyCharacter, maxLength: 30 }),
  fc.string({ maxLength: 12 }),
);

export const evilValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...WRONG_VALUES),
  evilText,
  fc.jsonValue({ maxDepth: 3 }),
  fc.integer(),
);

type Path = readonly (string | number)[];

/** The way to every value inside, the whole one first. */
export function pathsOf(value: unknown, at: Path = []): readonly Path[] {
  if (typeof value !== "object" || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...at, key]))];
}

/** A copy with another value there. */
export function replacedAt(value: unknown, [key, ...rest]: Path, next: unknown): unknown {
  if (key === undefined) return next;
  if (Array.isArray(value))
    return value.map((inner, i) => (String(i) === key ? replacedAt(inner, rest, next) : inner));
  if (typeof value !== "object" || value === null) return value; // an edit before this one took it away
  return { ...value, [key]: replacedAt((value as Record<string | number, unknown>)[key], rest, next) };
}

/** Copies of one of these, each with up to four values that do not belong there. */
export function mutantOf<T>(...bases: readonly T[]): fc.Arbitrary<unknown> {
  return fc.constantFrom(...bases).chain((base) => {
    const edit = fc.tuple(fc.constantFrom(...pathsOf(base)), evilValue);
    return fc
      .array(edit, { minLength: 1, maxLength: 4 })
      .map((edits) => edits.reduce<unknown>((value, [path, next]) => replacedAt(value, path, next), base));
  });
}

/** How often, and from which seed: printed, so that a run can be replayed with BERTH_SEED. */
export function runs(numRuns: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: runsOf(numRuns), seed: SEED };
}

export const SEED = Number(process.env["BERTH_SEED"] ?? Date.now() % 1_000_000);
