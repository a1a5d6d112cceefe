// SPDX-License-Identifier: Apache-2.0
// Other systems that ask for addresses by annotation, and how far Berth answers them (ADR 0024).

import type { Labels } from "../base/ports.ts";
import type { DialectChoice, Dialects } from "../model/dialect.ts";
import { LONGEST_JSON } from "./annotation-values.ts";
import { type DialectRow, fieldPattern } from "./dialect-row.ts";
import { DIALECT_ROWS } from "./dialect-rows.ts";
import { NETWORK_ANNOTATIONS, withoutAsked } from "./network-attachments.ts";

/** A row that asks Berth for something. */
export type ReadRow = DialectRow & Required<Pick<DialectRow, "read">>;

export const READ_ROWS: readonly ReadRow[] = DIALECT_ROWS.filter(
  (row): row is ReadRow => row.read !== undefined,
);

const isListed = ({ matches }: DialectRow): boolean => matches === undefined;
const LISTED = READ_ROWS.filter(isListed);
/** Of keys with names in them. */
export const NAMED_ROWS: readonly ReadRow[] = READ_ROWS.filter((row) => !isListed(row));

/** Those that their system reads as labels, too. */
export const LABEL_ROWS: readonly ReadRow[] = LISTED.filter(({ alsoLabel }) => alsoLabel === true);

/** The keys of other systems that Berth reads, as far as they have no names in them. */
const DIALECT_KEYS: readonly string[] = keysOn("pod");
export const NAMESPACE_DIALECT_KEYS: readonly string[] = keysOn("namespace");

const SYSTEM_OF = new Map(LISTED.map(({ key, system }) => [key, system])); // key -> system
const NAMED = new RegExp(NAMED_ROWS.map(({ matches }) => matches?.source).join("|"));

/** The rows that the key is of: Multus' list has one for addresses and one for MAC addresses. */
export function rowsOf(key: string): readonly ReadRow[] {
  return SYSTEM_OF.has(key)
    ? LISTED.filter((row) => row.key === key)
    : NAMED_ROWS.filter(({ matches }) => matches?.test(key) === true);
}

/** The keys that have names in them, as they stand there. */
export function namedKeysIn(annotations: Labels): readonly string[] {
  return Object.keys(annotations).filter((key) => NAMED.test(key));
}

/** Every key that stands there and that Berth reads on pods. */
export function readKeysIn(annotations: Labels): readonly string[] {
  return [...DIALECT_KEYS.filter((key) => annotations[key] !== undefined), ...namedKeysIn(annotations)];
}

/** The same without those that say MAC addresses and nothing else: most of these are not Berth's to keep. */
export function addressKeysIn(annotations: Labels): readonly string[] {
  return readKeysIn(annotations).filter((key) => rowsOf(key).some(({ asks: what }) => what !== "mac"));
}

/** Undefined: a key of Berth's own. */
export function choiceFor(dialects: Dialects | undefined, key: string): DialectChoice | undefined {
  const system = SYSTEM_OF.get(key) ?? rowsOf(key)[0]?.system;
  return system === undefined ? undefined : (dialects?.[system] ?? "all");
}

/** Whether a request under the key is one that the administrator wants read. */
export function isReadWith(dialects: Dialects | undefined): (key: string) => boolean {
  return (key) => choiceFor(dialects, key) !== "none";
}

/** Which of a pod's keys ask for addresses or pools, or say more of that: what a system writes itself asks for nothing. */
export function dialectKeysIn(annotations: Labels): readonly string[] {
  return readKeysIn(annotations).filter((key) => asks(key, annotations, (row) => row.asks !== "mac"));
}

/** Which of them ask for a MAC address. */
export function macKeysIn(annotations: Labels): readonly string[] {
  return readKeysIn(annotations).filter((key) => asks(key, annotations, (row) => row.asks === "mac"));
}

/** The same of a namespace's. */
export function defaultKeysIn(annotations: Labels): readonly string[] {
  return NAMESPACE_DIALECT_KEYS.filter((key) => annotations[key] !== undefined && asks(key, annotations));
}

function asks(key: string, annotations: Labels, isMeant: (row: ReadRow) => boolean = () => true): boolean {
  return rowsOf(key).some(
    (row) => isMeant(row) && !isNoRequest(row, annotations[key] ?? "", annotations, key),
  );
}

/** Of a key that stands there: systems pass over an empty value, and take what they wrote for no request. */
export function isNoRequest(row: DialectRow, value: string, annotations: Labels, key = row.key): boolean {
  if (isWritten(row, key, annotations)) return true;
  if (value.length > LONGEST_JSON) return false; // not looked through: it is refused
  if (value === "" || (row.containing !== undefined && !mayContain(row.containing, value))) return true;
  return row.empty?.test(value) === true;
}

function mayContain(field: string, value: string): boolean {
  return new RegExp(fieldPattern(field), "iu").test(value);
}

function isWritten({ unless }: DialectRow, key: string, annotations: Labels): boolean {
  return unless !== undefined && annotations[unless(key)] === "true";
}

/** kube-ovn writes the address that it gave under the key by which it is asked for one. */
export function isWrittenBySystem(key: string, annotations: Labels): boolean {
  return rowsOf(key).some((row) => isWritten(row, key, annotations));
}

const DECIDING = [...new Set(LISTED.flatMap(({ key, unless }) => unless?.(key) ?? []))];

/**
 * What of a pod's annotations has to be kept for its requests to be read later: those themselves, which networks it has, for keys that
 * name one, and what decides whether one is a request.
 */
export function keptKeysIn(annotations: Labels, isRead: (key: string) => boolean): readonly string[] {
  const named = namedKeysIn(annotations).filter(isRead);
  if (named.length === 0) return DECIDING;
  const deciding = named.flatMap((key) => rowsOf(key).flatMap(({ unless }) => unless?.(key) ?? []));
  return [...new Set([...DECIDING, ...named, ...deciding, ...NETWORK_ANNOTATIONS])];
}

/** The annotations without requests in the words of systems that the administrator chose so. */
export function withoutDialects(
  annotations: Labels,
  isLeftOut: (choice: DialectChoice | undefined) => boolean,
  dialects?: Dialects,
): Labels {
  const keys = Object.keys(annotations).filter((key) => SYSTEM_OF.has(key));
  const out = new Set(
    [...keys, ...namedKeysIn(annotations)].filter((key) => isLeftOut(choiceFor(dialects, key))),
  );
  if (out.size === 0) return annotations;
  return Object.fromEntries(
    Object.entries(annotations).flatMap(([key, value]) => {
      if (!out.has(key)) return [[key, value]];
      // which networks the pod has is said in no other place
      const rest = NETWORK_ANNOTATIONS.includes(key) ? withoutAsked(key, value) : undefined;
      return rest === undefined ? [] : [[key, rest]];
    }),
  );
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
    const [row] = rowsOf(key);
    const note = row?.note?.(annotations[key] ?? "");
    return note === undefined ? [] : [`annotation ${key}: ${note}`];
  });
}

function keysOn(place: "pod" | "namespace"): readonly string[] {
  return [...new Set(LISTED.filter(({ on }) => on.includes(place)).map(({ key }) => key))];
}
