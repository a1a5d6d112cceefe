// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { requestsAddress } from "../model/address-request.ts";
import { type Dialects, SYSTEMS } from "../model/dialect.ts";
import { IPS, POOLS, readRequest } from "./annotations.ts";
import type { DialectRow } from "./dialect-row.ts";
import { DIALECT_ROWS } from "./dialect-rows.ts";
import { choiceFor, isNoRequest, withoutEveryDialect } from "./dialects.ts";

/** What becomes of a pod that asks another system for an address, in words that Berth does not read. */
export const FOREIGN_CHOICES = ["warn", "refuse", "ignore"] as const;
export type ForeignChoice = (typeof FOREIGN_CHOICES)[number];

/** What is said of annotations that Berth does not answer. */
interface Foreign {
  /** They ask for what another system would give: a refusal, if the administrator says so. */
  readonly asks: readonly string[];
  /** They have nothing to do with addresses. */
  readonly beside: readonly string[];
}

const LONGEST = 100;

/** Keys on pods that Berth knows and does not read, whatever the administrator says. */
export const FOREIGN_ROWS: readonly DialectRow[] = DIALECT_ROWS.filter(({ read }) => read === undefined);
/** Those whose system would give what they name: of Berth's it is refused. */
export const GIVING_ROWS: readonly DialectRow[] = FOREIGN_ROWS.filter(({ gives }) => gives === true);

/** What each of a pod's annotations would have to be for Berth, in one line each. */
export function foreignRequests(annotations: Labels, dialects?: Dialects): Foreign {
  return requestsIn(annotations, dialects, "pod");
}

/** Keys that are for pods and stand on a namespace, where nobody but another system may heed them. */
const MISPLACED_ROWS: readonly DialectRow[] = DIALECT_ROWS.filter(
  ({ on, beside, gives, writtenOnNamespaces }) =>
    !on.includes("namespace") && (beside === undefined || gives === true) && writtenOnNamespaces !== true,
);

/** Keys on namespaces that ask another system, or that Berth reads on pods alone. */
export const NAMESPACE_ROWS: readonly DialectRow[] = DIALECT_ROWS.filter(
  (row) => row.on.includes("namespace") || MISPLACED_ROWS.includes(row),
);

/** The same of a namespace, whose pods would be given addresses by another system. */
export function foreignDefaults(annotations: Labels, dialects?: Dialects): Foreign {
  return requestsIn(annotations, dialects, "namespace");
}

function requestsIn(
  annotations: Labels,
  dialects: Dialects | undefined,
  place: "pod" | "namespace",
): Foreign {
  const isServed = place === "pod" && asksBerth(annotations);
  const rows = place === "namespace" ? NAMESPACE_ROWS : DIALECT_ROWS.filter(({ on }) => on.includes(place));
  const found = rows.flatMap((row) => {
    const key = keyOf(row, annotations);
    const isMisplaced = MISPLACED_ROWS.includes(row) && place === "namespace";
    const words = key && (wordsOf(row, key, dialects) ?? (isMisplaced ? forPodsAlone(row, key) : undefined));
    const saysMore = isMisplaced && row.asks === undefined && row.refusal === undefined;
    const isUnread = row.refusal === undefined && row.beside === undefined;
    if (words !== undefined && isServed && isUnread) return [{ words: besideOwn(row, key), isBeside: true }];
    const isBeside = row.beside !== undefined || row.asks === "mac" || saysMore;
    return words === undefined ? [] : [{ words, isBeside }];
  });
  const wordsWhere = (beside: boolean) =>
    found.filter(({ isBeside }) => isBeside === beside).map(({ words }) => words);
  return { asks: wordsWhere(false), beside: wordsWhere(true) };
}

/** Whether berth's own annotations ask for an address: what a system that is not read says counts for nothing then. */
function asksBerth(annotations: Labels): boolean {
  const request = readRequest(withoutEveryDialect(annotations), { name: "", labels: {}, annotations: {} });
  return !isRefusal(request) && requestsAddress(request);
}

function besideOwn({ system }: DialectRow, key = ""): string {
  return `annotation ${shown(key)} is ${SYSTEMS[system]}'s, and berth does not read it: the pod has what berth's own annotations ask for`;
}

function shown(key: string): string {
  return key.length > LONGEST ? `${key.slice(0, LONGEST)}...` : key;
}

/** Of a key that stands on a namespace. */
function forPodsAlone({ system, asks }: DialectRow, key: string): string {
  const whose = `annotation ${shown(key)} is ${SYSTEMS[system]}'s, and berth reads it on pods and templates alone, not on a namespace`;
  return asks === "pools" ? `${whose}; write ${POOLS} here, or it into them` : `${whose}; write it into them`;
}

/** Which annotations are requests that Berth does not answer, and whose. */
export function foreignKeys(
  annotations: Labels,
  dialects?: Dialects,
): readonly { readonly key: string; readonly system: string }[] {
  return DIALECT_ROWS.flatMap((row) => {
    const key = row.on.includes("pod") ? keyOf(row, annotations) : undefined;
    if (key === undefined || wordsOf(row, key, dialects) === undefined) return [];
    return [{ key, system: SYSTEMS[row.system] }];
  });
}

/** The first of the annotations that the row is about. */
function keyOf(row: DialectRow, annotations: Labels): string | undefined {
  const { key, matches } = row;
  if (matches !== undefined)
    return Object.keys(annotations).find(
      (one) => matches.test(one) && !isNoRequest(row, annotations[one] ?? "", annotations, one),
    );
  const value = annotations[key];
  return value === undefined || isNoRequest(row, value, annotations) ? undefined : key;
}

function wordsOf(row: DialectRow, key: string, dialects: Dialects | undefined): string | undefined {
  const whose = `annotation ${shown(key)} is ${SYSTEMS[row.system]}'s`;
  if (row.refusal !== undefined) return `${whose}: ${row.refusal}`;
  if (row.beside !== undefined) return `${whose}, and berth does not read it: ${row.beside}`;
  if (choiceFor(dialects, key) !== "none") return undefined;
  const instead = row.asks === "pools" ? POOLS : IPS;
  return row.asks === undefined || row.asks === "mac"
    ? `${whose}, and berth does not read it`
    : `${whose}, and berth does not read it; write ${instead} for an address of berth's`;
}

/** The same as the administrator wants it: as warnings, or as a refusal. */
export function judgeForeign({ asks, beside }: Foreign, choice: ForeignChoice): readonly string[] | Refusal {
  if (choice === "ignore") return [];
  const [first] = asks;
  if (choice === "warn" || first === undefined) return [...asks, ...beside];
  return refuse("REQUEST_INVALID", `${first}${first.includes("; ") ? ", or" : ";"} remove it`);
}
