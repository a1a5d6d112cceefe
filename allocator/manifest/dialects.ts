// SPDX-License-Identifier: Apache-2.0
// Other systems that ask for addresses by annotation, and how far Berth answers them (ADR 0024).

import type { Labels } from "../base/ports.ts";
import type { DialectChoice, Dialects } from "../model/dialect.ts";
import type { DialectRow } from "./dialect-row.ts";
import { DIALECT_ROWS } from "./dialect-rows.ts";

/** A row that asks Berth for something. */
export type ReadRow = DialectRow & Required<Pick<DialectRow, "read">>;

export const READ_ROWS: readonly ReadRow[] = DIALECT_ROWS.filter(
  (row): row is ReadRow => row.read !== undefined,
);

/** The keys of other systems that Berth reads. */
export const DIALECT_KEYS: readonly string[] = keysOn("pod");
export const NAMESPACE_DIALECT_KEYS: readonly string[] = keysOn("namespace");

const SYSTEM_OF = new Map(READ_ROWS.map(({ key, system }) => [key, system])); // key -> system

/** Undefined: a key of Berth's own. */
export function choiceFor(dialects: Dialects | undefined, key: string): DialectChoice | undefined {
  const system = SYSTEM_OF.get(key);
  return system === undefined ? undefined : (dialects?.[system] ?? "all");
}

/** Whether a request under the key is one that the administrator wants read. */
export function isReadWith(dialects: Dialects | undefined): (key: string) => boolean {
  return (key) => choiceFor(dialects, key) !== "none";
}

/** Which of the keys stand there as requests: what a system writes itself asks for nothing. */
export function dialectKeysIn(annotations: Labels, keys: readonly string[] = DIALECT_KEYS): string[] {
  return keys.filter((key) => annotations[key] !== undefined && !asksNothing(key, annotations));
}

/** Of a key that stands there: systems pass over an empty value, and take what they wrote for no request. */
export function asksNothing(key: string, annotations: Labels): boolean {
  if (isWrittenBySystem(key, annotations)) return true;
  const value = annotations[key] ?? "";
  const row = DIALECT_ROWS.find((one) => one.key === key);
  return row !== undefined && (value === "" || row.empty?.test(value) === true);
}

/** kube-ovn writes the address that it gave under the key by which it is asked for one. */
export function isWrittenBySystem(key: string, annotations: Labels): boolean {
  const { unless } = READ_ROWS.find((row) => row.key === key) ?? {};
  return unless !== undefined && annotations[unless] === "true";
}

/** Other annotations that decide whether one is a request. */
export const DECIDING_KEYS: readonly string[] = [...new Set(READ_ROWS.flatMap(({ unless }) => unless ?? []))];

/** The annotations without requests in the words of systems that the administrator chose so. */
export function withoutDialects(
  annotations: Labels,
  isLeftOut: (choice: DialectChoice | undefined) => boolean,
  dialects?: Dialects,
): Labels {
  const out = new Set(
    [...SYSTEM_OF.keys()].filter(
      (key) => annotations[key] !== undefined && isLeftOut(choiceFor(dialects, key)),
    ),
  );
  if (out.size === 0) return annotations;
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !out.has(key)));
}

/** Without what the administrator does not want read. */
export function withoutUnread(annotations: Labels, dialects: Dialects | undefined): Labels {
  return withoutDialects(annotations, (choice) => choice === "none", dialects);
}

/** Berth's own alone. */
export function withoutEveryDialect(annotations: Labels): Labels {
  return withoutDialects(annotations, (choice) => choice !== undefined);
}

/** Of what is written on a served pod beside its address: what Berth does otherwise than its system would. */
export function notesOn(annotations: Labels): string[] {
  return dialectKeysIn(annotations).flatMap((key) => {
    const row = READ_ROWS.find((one) => one.key === key);
    const note = row?.note?.(annotations[key] ?? "");
    return row === undefined || note === undefined ? [] : [`annotation ${key}: ${note}`];
  });
}

function keysOn(place: "pod" | "namespace"): readonly string[] {
  return [...new Set(READ_ROWS.filter(({ on }) => on.includes(place)).map(({ key }) => key))];
}
