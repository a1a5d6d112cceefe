// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { AddressEntry, Request } from "../model/address-request.ts";
import { FIRST_INTERFACE } from "../model/interfaces.ts";
import { bad } from "./annotation-values.ts";
import type { DialectReader } from "./dialect-values.ts";

/** One annotation that another system, or Berth, understands. */
export interface AnnotationFormat {
  readonly system: string;
  readonly key: string;
  readonly read: DialectReader;
}

/** The longest list that is read, of 1,024 pairs of addresses, has 57 KiB: what is longer would only cost time. */
export const LONGEST_VALUE = 64 * 1024;

interface Said {
  /** The last annotation of the system that spoke of it. */
  readonly key: string;
  readonly value: unknown;
}

/** What of a request is said by one system, or by all of them. */
type Aspects = Map<string, Said>; // aspect -> what is said

/** All that the annotations ask for. A system's own annotations complete each other; those of two systems must say the same. */
export function mergeFormats(formats: readonly AnnotationFormat[], annotations: Labels): Request | Refusal {
  if (formats.length === 0) return {};
  const systems = new Map<string, Aspects>(); // system -> what it says
  for (const format of formats) {
    const asked = systems.get(format.system) ?? new Map<string, Said>();
    systems.set(format.system, asked);
    const said = readOne(format, annotations);
    if (isRefusal(said)) return said;
    const clash = join(asked, said, format.key);
    if (clash !== undefined) return clash;
  }
  const all: Aspects = new Map();
  for (const asked of systems.values()) {
    const clash = agree(all, asked);
    if (clash !== undefined) return clash;
  }
  const unwanted = poolsOfOtherFamily(all) ?? fallbackOnInterfaces(all);
  if (unwanted !== undefined) return unwanted;
  return Object.fromEntries([...all].map(([aspect, { value }]) => [aspect, value])) as Request;
}

/** What one annotation asks for. */
export function readOne({ key, read }: AnnotationFormat, annotations: Labels): Request | Refusal {
  const value = annotations[key] ?? "";
  return value.length > LONGEST_VALUE
    ? bad(key, `it is longer than ${LONGEST_VALUE} characters`)
    : read(value, key, annotations);
}

/** Of one system: pools of one family and of the other are those of both. */
function join(asked: Aspects, said: Request, key: string): Refusal | undefined {
  for (const [aspect, value] of Object.entries(said)) {
    const before = asked.get(aspect);
    const joined = before === undefined ? value : joinedValue(aspect, before.value, value);
    if (joined === undefined) return disagreement(key, before?.key ?? key);
    asked.set(aspect, { key, value: joined });
  }
  return undefined;
}

function joinedValue(aspect: string, before: unknown, value: unknown): unknown {
  if (aspect === "retention") return { ...(before as object), ...(value as object) };
  if (aspect === "pools" && areOfOtherFamilies(before as string[], value as string[]))
    return [...(before as string[]), ...(value as string[])];
  return meaningOf(aspect, before) === meaningOf(aspect, value) ? before : undefined;
}

/** The addresses of one family are written `db/IPv4`, or as a CIDR. */
const isIPv6 = (name: string) => name.endsWith("/IPv6") || (name.includes(":") && name.includes("/"));
const isIPv4 = (name: string) => name.includes("/") && !isIPv6(name);

/** Pools of a family that the pod is not to have would be passed over. */
function poolsOfOtherFamily(all: Aspects): Refusal | undefined {
  const [pools, families] = [all.get("pools"), all.get("families")];
  if (pools === undefined || families === undefined) return undefined;
  const wanted = families.value as readonly string[];
  const names = pools.value as readonly string[];
  const isUnwanted = (name: string) =>
    (isIPv4(name) && !wanted.includes("IPv4")) || (isIPv6(name) && !wanted.includes("IPv6"));
  return names.some(isUnwanted) ? disagreement(families.key, pools.key) : undefined;
}

/** Which of several another address would be of would have to be written down with it. */
function fallbackOnInterfaces(all: Aspects): Refusal | undefined {
  const [fallback, interfaces] = [all.get("fallback"), all.get("interfaces")];
  if (fallback === undefined || interfaces === undefined) return undefined;
  const words = `it cannot stand beside addresses of named interfaces (${interfaces.key}); leave one of the two out`;
  return bad(fallback.key, words);
}

function areOfOtherFamilies(some: readonly string[], others: readonly string[]): boolean {
  return (some.every(isIPv4) && others.every(isIPv6)) || (some.every(isIPv6) && others.every(isIPv4));
}

/** Of two systems: what both speak of is the same. */
function agree(all: Aspects, asked: Aspects): Refusal | undefined {
  const clash = countedOtherwise(all, asked) ?? onOtherInterface(all, asked) ?? onOtherInterface(asked, all);
  if (clash !== undefined) return clash;
  for (const [aspect, said] of asked) {
    const before = all.get(aspect);
    if (before === undefined) {
      all.set(aspect, said);
    } else if (aspect === "retention") {
      const clash = retentionClash(before, said);
      if (clash !== undefined) return clash;
      all.set(aspect, { ...said, value: { ...(before.value as object), ...(said.value as object) } });
    } else if (meaningOf(aspect, before.value) !== meaningOf(aspect, said.value)) {
      return disagreement(said.key, before.key);
    }
  }
  return undefined;
}

/** Of two lists one counts from the first ordinal, and the other from 0. */
function countedOtherwise(all: Aspects, asked: Aspects): Refusal | undefined {
  const [before, said] = [all.get("entries"), asked.get("entries")];
  if (before === undefined || said === undefined) return undefined;
  const isList = (said.value as readonly unknown[]).length > 1;
  const isSame = asked.has("fromOrdinalZero") === all.has("fromOrdinalZero");
  return isSame || !isList ? undefined : disagreement(said.key, before.key);
}

/** Who names no interface means the pod's first. */
function onOtherInterface(some: Aspects, others: Aspects): Refusal | undefined {
  const [interfaces, plain] = [some.get("interfaces"), others.get("entries")];
  if (interfaces === undefined || plain === undefined || others.has("interfaces")) return undefined;
  const names = Object.keys(interfaces.value as object);
  return names.every((name) => name === FIRST_INTERFACE)
    ? undefined
    : disagreement(plain.key, interfaces.key);
}

function retentionClash(before: Said, said: Said): Refusal | undefined {
  const was = before.value as Record<string, unknown>;
  const differs = Object.entries(said.value as object).some(
    ([part, value]) => was[part] !== undefined && was[part] !== value,
  );
  return differs ? disagreement(said.key, before.key) : undefined;
}

function disagreement(key: string, other: string): Refusal {
  return bad(key, `it disagrees with ${other}; keep one of the two`);
}

/** The order of a pod's two addresses means nothing, nor does that of families. */
function meaningOf(aspect: string, value: unknown): string {
  if (aspect === "entries") return JSON.stringify((value as AddressEntry[]).map((entry) => entry.toSorted()));
  return JSON.stringify(aspect === "families" ? (value as string[]).toSorted() : value);
}
