// SPDX-License-Identifier: Apache-2.0
// JSON of Kubernetes objects, and of annotations.

import type { Labels } from "../base/ports.ts";

/** RFC 1123, as Kubernetes asks of names: what may be part of a key. */
const NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

export function isName(text: string): boolean {
  return NAME.test(text);
}

/**
 * The object with its keys as Go's encoding/json reads them: a key is taken for one of `names` in any letter case, and of several the
 * last one counts. `names` may have letters and - alone.
 */
export function asGoReads(object: object, names: readonly string[]): object {
  const patterns = names.map((name) => ({ name, pattern: new RegExp(`^${name}$`, "iu") }));
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => [
      patterns.find(({ pattern }) => pattern.test(key))?.name ?? key,
      value,
    ]),
  );
}

/** JSON whose form is not known. Each method gives a field if it has the type that is asked for, and otherwise an empty value of that type. */
export class Fields {
  readonly value: Readonly<Record<string, unknown>>;

  constructor(value: unknown) {
    this.value =
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? (value as Record<string, unknown>)
        : {};
  }

  #own(key: string): unknown {
    return Object.hasOwn(this.value, key) ? this.value[key] : undefined;
  }

  get(key: string): unknown {
    return this.#own(key);
  }

  at(key: string): Fields {
    return new Fields(this.#own(key));
  }

  text(key: string): string {
    const value = this.#own(key);
    return typeof value === "string" ? value : "";
  }

  flag(key: string): boolean {
    return this.#own(key) === true;
  }

  /** A whole number from 0 on, or `otherwise`. */
  count(key: string, otherwise: number): number {
    const value = this.#own(key);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : otherwise;
  }

  list(key: string): readonly unknown[] {
    const value = this.#own(key);
    return Array.isArray(value) ? value : [];
  }

  /** The entries of a map whose values are text; null is empty text, as the API server reads it. */
  texts(key: string): Labels {
    return Object.fromEntries(
      Object.entries(this.at(key).value).flatMap(([name, value]) => {
        if (value === null) return [[name, ""]];
        return typeof value === "string" ? [[name, value]] : [];
      }),
    );
  }
}
