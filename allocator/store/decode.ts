// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../base/errors.ts";
import { quote } from "../base/validation.ts";
import { type Address, parseAddress, parseCidr } from "../ip/address.ts";
import type { Unknown } from "./store.ts";

/**
 * Makes a T of parsed JSON, field by field, or throws BerthError STATE_CORRUPT naming the field. Unlike a Shape,
 * which advises people, it gives back a new value that has the type, and addresses in canonical form. What is not
 * known here goes to `unknown`; without one, it is refused like anything else that is wrong.
 */
export type Decoder<T> = (value: unknown, field: string, unknown?: Unknown[]) => T;

/** Marks a field that may be absent. */
interface Optional<T> {
  readonly optional: Decoder<T>;
}

/** One entry for each field of T, so that a field added to T and not to its reading does not compile. */
export type Fields<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K> ? Optional<Exclude<T[K], undefined>> : Decoder<T[K]>;
};

export function optional<T>(read: Decoder<T>): Optional<T> {
  return { optional: read };
}

export function malformed(field: string, words: string): BerthError {
  return new BerthError("STATE_CORRUPT", `${field} ${words}`);
}

export function text(value: unknown, field: string): string {
  if (typeof value !== "string") throw malformed(field, `must be text, not ${quote(value)}`);
  return value;
}

/** A part of a key: without `/`, which parts keys, and without what no terminal shows. */
export function name(value: unknown, field: string): string {
  const found = text(value, field);
  if (/^[^\s/\p{C}]{1,253}$/u.test(found)) return found;
  throw malformed(field, `cannot be a name: ${quote(value)}`);
}

export function flag(value: unknown, field: string): boolean {
  if (typeof value !== "boolean") throw malformed(field, `must be true or false, not ${quote(value)}`);
  return value;
}

/** Milliseconds: a length of time, or since 1970. */
export function milliseconds(value: unknown, field: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw malformed(field, `must be a number of milliseconds, not ${quote(value)}`);
}

/** 0, 1, 2, ... */
export function index(value: unknown, field: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw malformed(field, `must be a whole number from 0, not ${quote(value)}`);
}

export function address(value: unknown, field: string): Address {
  const found = parseAddress(text(value, field));
  if (found === undefined) throw malformed(field, `must be an address, not ${quote(value)}`);
  return found;
}

/** One of these. Any other text is taken for `otherwise`, which must be what gives nothing away. */
export function oneOf<T extends string>(choices: readonly T[], otherwise: T): Decoder<T> {
  return (value, field, unknown) => {
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    if (unknown === undefined || typeof value !== "string") {
      throw malformed(field, `must be one of ${choices.join(", ")}, not ${quote(value)}`);
    }
    unknown.push({ ...placeOf(field), value, takenFor: otherwise });
    return otherwise;
  };
}

/** Far more than a newer Berth may add. Each is kept, and looked at with every change of its record. */
const MOST_UNKNOWN = 64;

/** With what a newer Berth may add. */
const MOST_CHOICES = 16;

/** Some of these. Others are left out; the list stays as it is stored as long as nobody changes it. */
export function someOf<T extends string>(...choices: readonly T[]): Decoder<readonly T[]> {
  // a list of no choices would have no entry to be read
  const strictly = list(oneOf(choices, choices[0] as T), MOST_CHOICES);
  return (value, field, unknown) => {
    if (unknown === undefined || !Array.isArray(value) || value.length > MOST_CHOICES)
      return strictly(value, field);
    const known = choices.filter((choice) => value.includes(choice));
    const texts = value.filter((entry) => typeof entry === "string");
    if (texts.length < value.length || new Set(texts).size <= known.length) return strictly(value, field);
    const found = strictly(
      value.filter((entry) => known.includes(entry)),
      field,
    );
    unknown.push({ ...placeOf(field), value, takenFor: found });
    return found;
  };
}

/** `claim.binding.node` is `node` in `binding`. Names of fields that are known have no dots. */
export function placeOf(field: string): Pick<Unknown, "path" | "key"> {
  const [, ...path] = field.split(".");
  return { path: path.slice(0, -1), key: path.at(-1) ?? "" };
}

export function orNull<T>(read: Decoder<T>): Decoder<T | null> {
  return (value, field, unknown) => (value === null ? null : read(value, field, unknown));
}

/**
 * Its entries have no names to be found again by: what is not known in them is refused. `most`, as the schema has it, is looked at
 * before any of them is: whoever writes to the store itself passes no schema.
 */
export function list<T>(read: Decoder<T>, most = Number.POSITIVE_INFINITY): Decoder<readonly T[]> {
  return (value, field) => {
    if (!Array.isArray(value)) throw malformed(field, `must be a list, not ${quote(value)}`);
    if (value.length > most) throw malformed(field, `has more than ${most} entries`);
    return value.map((entry, i) => read(entry, `${field}[${i}]`));
  };
}

/** A network in canonical form, without host bits. */
export function network(value: unknown, field: string): string {
  const found = text(value, field);
  if (parseCidr(found)?.text === found) return found;
  throw malformed(field, `must be a network, not ${quote(value)}`);
}

export function plainObject(value: unknown, field: string): Readonly<Record<string, unknown>> {
  return { ...objectIn(value, field) };
}

/** As it came: for who takes out of it what he knows. */
function objectIn(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw malformed(field, `must be an object, not ${quote(value)}`);
}

/** How one field of an object is read. */
interface FieldReader {
  readonly key: string;
  readonly read: Decoder<unknown>;
  readonly isOptional: boolean;
}

/** An object of these fields. Others go to `unknown`, or are refused: to drop one would lose it at the next replace. */
export function object<T extends object>(fields: Fields<T>): Decoder<T> {
  const readers = Object.entries<Decoder<unknown> | Optional<unknown>>(fields).map(
    ([key, how]): FieldReader =>
      typeof how === "function"
        ? { key, read: how, isOptional: false }
        : { key, read: how.optional, isOptional: true },
  );
  const known = new Set(readers.map(({ key }) => key));
  const namesBelow = namesOf([...known]);
  return (value, field, unknown) => {
    const source = objectIn(value, field);
    const keys = Object.keys(source);
    if (keys.length > known.size + MOST_UNKNOWN)
      throw malformed(field, `has more than ${MOST_UNKNOWN} fields that are not known here`);
    if (!keys.every((key) => known.has(key))) {
      const others = keys.filter((key) => !known.has(key));
      putAside(field, others, source, unknown);
    }
    const names = namesBelow(field);
    const found: Record<string, unknown> = {};
    for (let i = 0; i < readers.length; i++) {
      const { key, read, isOptional } = readers[i] as FieldReader;
      const given = source[key];
      if (!isOptional || given !== undefined) found[key] = read(given, names[i] as string, unknown);
    }
    return found as T; // every field of T was read by a Read of its type
  };
}

/** What fields are called in messages, `claim.binding.node`, made anew only below another one: every record of a kind is read through here. */
function namesOf(keys: readonly string[]): (field: string) => readonly string[] {
  let above: string | undefined;
  let names: readonly string[] = [];
  return (field) => {
    if (field !== above) names = keys.map((key) => `${field}.${key}`);
    above = field;
    return names;
  };
}

function putAside(
  field: string,
  keys: readonly string[],
  source: Readonly<Record<string, unknown>>,
  unknown: Unknown[] | undefined,
): void {
  if (unknown === undefined) throw malformed(`${field}.${keys[0]?.slice(0, 60)}`, "is not known here");
  const path = field.split(".").slice(1);
  for (const key of keys) unknown.push({ path, key, value: source[key] });
}
