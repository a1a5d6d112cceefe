// SPDX-License-Identifier: Apache-2.0
import { type Address, parseAddress } from "../address.ts";
import { BerthError } from "../errors.ts";
import { quote } from "../shape.ts";

/**
 * Makes a T of parsed JSON, field by field, or throws BerthError STATE_CORRUPT naming the field. Unlike a Shape,
 * which advises people, it gives back a new value that has the type, and addresses in canonical form.
 */
export type Read<T> = (value: unknown, field: string) => T;

/** Marks a field that may be absent. */
export interface Optional<T> {
  readonly optional: Read<T>;
}

/** One entry for each field of T, so that a field added to T and not to its reading does not compile. */
export type Fields<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K> ? Optional<Exclude<T[K], undefined>> : Read<T[K]>;
};

export function optional<T>(read: Read<T>): Optional<T> {
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

export function oneOf<T extends string>(...choices: readonly T[]): Read<T> {
  return (value, field) => {
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    throw malformed(field, `must be one of ${choices.join(", ")}, not ${quote(value)}`);
  };
}

export function orNull<T>(read: Read<T>): Read<T | null> {
  return (value, field) => (value === null ? null : read(value, field));
}

export function list<T>(read: Read<T>): Read<readonly T[]> {
  return (value, field) => {
    if (!Array.isArray(value)) throw malformed(field, `must be a list, not ${quote(value)}`);
    return value.map((entry, i) => read(entry, `${field}[${i}]`));
  };
}

export function plainObject(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw malformed(field, `must be an object, not ${quote(value)}`);
}

/**
 * An object of these fields and no others: to drop a field that a newer Berth wrote would lose it at the next
 * replace.
 */
export function object<T extends object>(fields: Fields<T>): Read<T> {
  const known = new Map(Object.entries<Read<unknown> | Optional<unknown>>(fields)); // field -> how it is read
  return (value, field) => {
    const source = plainObject(value, field);
    const unknown = Object.keys(source).find((key) => !known.has(key));
    if (unknown !== undefined) throw malformed(`${field}.${unknown}`, "is not known here");
    const found: Record<string, unknown> = {};
    for (const [key, how] of known) {
      const given = source[key];
      if (typeof how === "function") found[key] = how(given, `${field}.${key}`);
      else if (given !== undefined) found[key] = how.optional(given, `${field}.${key}`);
    }
    return found as T; // every field of T was read by a Read of its type
  };
}
