// SPDX-License-Identifier: Apache-2.0
import { isObject } from "../../allocator/base/validation.ts";
import { type CniError, cniError } from "./errors.ts";

/**
 * A JSON object read the way the Go peers read theirs (encoding/json): keys in any letter case, the last of several
 * wins, null is the same as absent. Configurations in the field, and the reference's own tests, rely on it.
 *
 * What has the wrong type is left out and remembered: after reading, `problem` has the first find of the document.
 */
export class Fields {
  readonly #values = new Map<string, unknown>(); // key in lower case -> value
  /** As they are written. */
  readonly keys: readonly string[];
  readonly #path: string;
  readonly #finds: CniError[];

  constructor(value: object, path = "", finds: CniError[] = []) {
    for (const [key, entry] of Object.entries(value)) this.#values.set(key.toLowerCase(), entry);
    this.keys = Object.keys(value);
    this.#path = path;
    this.#finds = finds;
  }

  /** The first thing that could not be read, here or in a section that came from here. */
  get problem(): CniError | undefined {
    return this.#finds[0];
  }

  /** Whether the key is there, be it null. */
  has(key: string): boolean {
    return this.#values.has(key.toLowerCase());
  }

  text(key: string): string | undefined {
    const value = this.#value(key);
    return value === undefined || typeof value === "string" ? value : this.#find(key, "string", value);
  }

  /** Whole numbers only; beyond 2^53 they cannot be told apart and are refused. */
  integer(key: string): number | undefined {
    const value = this.#value(key);
    if (value === undefined || (typeof value === "number" && Number.isSafeInteger(value))) return value;
    return this.#find(key, "int", value);
  }

  flag(key: string): boolean {
    const value = this.#value(key);
    if (typeof value !== "boolean" && value !== undefined) this.#find(key, "bool", value);
    return value === true;
  }

  texts(key: string): readonly string[] {
    const texts: string[] = [];
    for (const [i, value] of this.list(key).entries()) {
      if (typeof value === "string") texts.push(value);
      else this.#find(`${key}[${i}]`, "string", value);
    }
    return texts;
  }

  section(key: string): Fields | undefined {
    const value = this.#value(key);
    if (value === undefined || isObject(value))
      return value && new Fields(value, this.nameOf(key), this.#finds);
    return this.#find(key, "object", value);
  }

  sections(key: string): readonly Fields[] {
    return this.#sectionsIn(this.list(key), key);
  }

  /** A list of lists of objects, such as host-local's `ranges`; a null in the outer list is an empty list. */
  sectionLists(key: string): readonly (readonly Fields[])[] {
    return this.list(key).map((value, i) => {
      const at = `${key}[${i}]`;
      if (Array.isArray(value)) return this.#sectionsIn(value, at);
      if (value !== null) this.#find(at, "list", value);
      return [];
    });
  }

  /** Keys that are data, not names of fields: kept as they are written. Entries that are not text are left out. */
  labels(key: string): Readonly<Record<string, string>> | undefined {
    const value = this.#value(key);
    if (value === undefined) return undefined;
    if (!isObject(value)) return this.#find(key, "object", value);
    const texts = Object.entries(value).flatMap(([name, entry]) =>
      typeof entry === "string" ? [[name, entry] as const] : [],
    );
    return Object.fromEntries(texts);
  }

  list(key: string): readonly unknown[] {
    const value = this.#value(key);
    if (value === undefined || Array.isArray(value)) return value ?? [];
    return this.#find(key, "list", value) ?? [];
  }

  #value(key: string): unknown {
    return this.#values.get(key.toLowerCase()) ?? undefined;
  }

  #sectionsIn(values: readonly unknown[], at: string): readonly Fields[] {
    const sections: Fields[] = [];
    for (const [i, value] of values.entries()) {
      if (isObject(value)) sections.push(new Fields(value, this.nameOf(`${at}[${i}]`), this.#finds));
      else this.#find(`${at}[${i}]`, "object", value);
    }
    return sections;
  }

  /** How the document has it: `ipam.ranges`. */
  nameOf(key: string): string {
    return this.#path === "" ? key : `${this.#path}.${key}`;
  }

  /** The value itself stays out of the text: errors end up in the events of a Pod. */
  #find(key: string, wanted: string, value: unknown): undefined {
    const text = `json: cannot unmarshal ${kindOf(value)} into field ${this.nameOf(key)} of type ${wanted}`;
    this.#finds.push(cniError("DECODING_FAILURE", text));
    return undefined;
  }
}

/** The one JSON object on stdin; nothing may stand before or behind it. `null` is an object without keys. */
export function parseFields(text: string): Fields | CniError {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return cniError("DECODING_FAILURE", `error unmarshall network config: ${reasonOf(error)}`);
  }
  if (isObject(value)) return new Fields(value);
  if (value === null) return new Fields({});
  return cniError(
    "DECODING_FAILURE",
    `error unmarshall network config: json: cannot unmarshal ${kindOf(value)}`,
  );
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value === null) return "null";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** V8 quotes what stands around the fault; that may be a secret, and the text ends up in the events of a Pod. */
function reasonOf(error: unknown): string {
  const words = error instanceof Error ? error.message.replace(/, (?:\.\.\.)?".*$/su, "") : "not JSON";
  return words.charAt(0).toLowerCase() + words.slice(1);
}
