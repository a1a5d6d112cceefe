// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "./errors.ts";
import { nearestWord } from "./nearest-word.ts";

/**
 * Says what is wrong with a value that came from outside as JSON, naming the field (`spec.ranges[1].cidr`);
 * undefined: nothing. What passes may be used as the type that the shape describes.
 */
export type Validator = (value: unknown, field: string) => Refusal | undefined;

/** RFC 1123: what Kubernetes asks of the names of most objects. */
export function isSubdomain(name: string): boolean {
  return name.length <= 253 && SUBDOMAIN.test(name);
}

const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** What is wrong with a field of a pool: code POOL_INVALID, the words begin with the field. */
export function invalidPool(field: string, words: string): Refusal {
  return refuse("POOL_INVALID", `${field} ${words}`, { field });
}

/** A value from outside inside a message: text quoted and cut, anything with parts only named. */
export function quote(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}...` : value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

/** Text that is not empty. `longest` bounds what an untrusted object can make us keep and print. */
export function text(longest = 253): Validator {
  return (value, field) => {
    if (typeof value !== "string" || value === "")
      return invalidPool(field, `must be text, not ${quote(value)}`);
    return value.length > longest ? invalidPool(field, `must have at most ${longest} characters`) : undefined;
  };
}

/** Text of one form; `example` goes into the message. */
export function textLike(form: RegExp, example: string): Validator {
  const anyText = text();
  return (value, field) => {
    const refusal = anyText(value, field);
    if (refusal !== undefined || form.test(String(value))) return refusal;
    return invalidPool(field, `${quote(value)} is not of the form ${example}`);
  };
}

export function flag(value: unknown, field: string): Refusal | undefined {
  return typeof value === "boolean"
    ? undefined
    : invalidPool(field, `must be true or false, not ${quote(value)}`);
}

/** A whole number, both bounds included. */
export function whole(least: number, most: number): Validator {
  return (value, field) => {
    if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return undefined;
    return invalidPool(field, `must be a whole number from ${least} to ${most}, not ${quote(value)}`);
  };
}

export function oneOf(...choices: readonly string[]): Validator {
  return (value, field) =>
    choices.some((choice) => choice === value)
      ? undefined
      : invalidPool(field, `must be one of ${choices.join(", ")}, not ${quote(value)}`);
}

/** A list of at most `most` items, each of the shape. */
export function list(item: Validator, most: number): Validator {
  return (value, field) => {
    if (!Array.isArray(value)) return invalidPool(field, `must be a list, not ${quote(value)}`);
    if (value.length > most)
      return invalidPool(field, `has ${value.length} entries; at most ${most} are allowed`);
    for (const [i, entry] of value.entries()) {
      const refusal = item(entry, `${field}[${i}]`);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
}

/** An object whose keys are free, such as labels. */
export function mapOf(key: Validator, value: Validator): Validator {
  return (map, field) => {
    if (!isObject(map)) return invalidPool(field, `must be an object, not ${quote(map)}`);
    for (const [name, entry] of Object.entries(map)) {
      const refusal = key(name, field) ?? value(entry, `${field}[${quote(name)}]`);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
}

/** An object of these fields and no others. */
export function object(
  fields: Readonly<Record<string, Validator>>,
  required: readonly string[] = [],
): Validator {
  return (value, field) => {
    const unknown = isObject(value)
      ? Object.keys(value).find((name) => !Object.hasOwn(fields, name))
      : undefined;
    return unknown === undefined
      ? openObject(fields, required)(value, field)
      : unknownField(unknown, fields, field);
  };
}

/** An object of these fields, and others that are left as they are. */
export function openObject(
  fields: Readonly<Record<string, Validator>>,
  required: readonly string[] = [],
): Validator {
  return (value, field) => {
    if (!isObject(value)) return invalidPool(field, `must be an object, not ${quote(value)}`);
    for (const [name, entry] of Object.entries(value)) {
      const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
      const refusal = shape?.(entry, `${field}.${name}`);
      if (refusal !== undefined) return refusal;
    }
    const missing = required.find((name) => !Object.hasOwn(value, name));
    return missing === undefined ? undefined : invalidPool(`${field}.${missing}`, "is missing");
  };
}

/** Of parsed JSON: an object, and no list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unknownField(name: string, fields: Readonly<Record<string, Validator>>, field: string): Refusal {
  const known = Object.keys(fields);
  const near = nearestWord(name, known);
  const advice = near === undefined ? `known here: ${known.join(", ")}` : `did you mean ${near}?`;
  return invalidPool(field, `has an unknown field ${quote(name)}; ${advice}`);
}
