// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { sameSet } from "../base/same-set.ts";
import { type Address, type Family, familyOf } from "../ip/address.ts";
import type { AddressEntry, Request } from "../model/address-request.ts";
import {
  FIRST_INTERFACE,
  type InterfacePools,
  type Interfaces,
  parseAddresses,
  saidOf,
} from "../model/interfaces.ts";
import { bad, repeated } from "./annotation-values.ts";
import type { DialectReader } from "./dialect-values.ts";
import { hasFurtherInterfaces, withFirstOfFamilies } from "./first-interface-families.ts";
import { type SaidAddresses, unitedAddresses, unitedPools } from "./interface-union.ts";
import { tooManyIn, twiceIn } from "./interface-values.ts";
import { familyOfPart } from "./pool-names.ts";

/** One annotation that another system, or Berth, understands. */
export interface AnnotationFormat {
  readonly system: string;
  readonly key: string;
  readonly read: DialectReader;
}

/** The longest list that is read, of 1,024 pairs of addresses, has 57 KiB: what is longer would only cost time. */
export const LONGEST_VALUE = 64 * 1024;

export const FAMILIES = "berth.dev/families";
export const FALLBACK = "berth.dev/fallback";
/** What a pod was assigned, by Berth. */
export const ASSIGNED_ADDRESSES = "berth.dev/addresses";

interface Said {
  /** The last annotation of the system that spoke of it. */
  readonly key: string;
  readonly value: unknown;
}

/** What of a request is said by one system, or by all of them. */
type Aspects = Map<string, Said>; // aspect -> what is said

/** All that the annotations ask for. A system's own annotations complete each other; those of two systems must say the same. */
export function mergeFormats(
  formats: readonly AnnotationFormat[],
  annotations: Labels,
  namespace?: string,
): Request | Refusal {
  if (formats.length === 0) return {};
  const systems = new Map<string, Aspects>(); // system -> what it says
  for (const format of formats) {
    const asked = systems.get(format.system) ?? new Map<string, Said>();
    systems.set(format.system, asked);
    const said = readOne(format, annotations, namespace);
    if (isRefusal(said)) return said;
    const clash = join(asked, said, format.key);
    if (clash !== undefined) return clash;
  }
  if (annotations[FALLBACK] !== undefined) withoutGiven(systems, annotations);
  const all: Aspects = new Map();
  for (const asked of systems.values()) {
    const clash = agree(all, asked);
    if (clash !== undefined) return clash;
  }
  const unwanted =
    placeRest(all) ?? familiesOfFirst(all) ?? poolsOfOtherFamily(all) ?? fallbackOnInterfaces(all);
  if (unwanted !== undefined) return unwanted;
  // said, so that another system's word for the contrary is a contradiction; by itself it asks for nothing
  if (all.get("sticky")?.value === false) all.delete("sticky");
  return Object.fromEntries([...all].map(([aspect, { value }]) => [aspect, value])) as Request;
}

/**
 * Where any other address will do, Multus' list has what the pod was given (fallback-annotations.ts), and what the pod asks for stays in
 * other words, if it stands there too. What else Multus' list says is a request like any other, which those have to agree with.
 */
function withoutGiven(systems: ReadonlyMap<string, Aspects>, annotations: Labels): void {
  const multus = systems.get("multus");
  const entries = multus?.get("entries");
  if (multus === undefined || entries === undefined) return;
  const others = [...systems].filter(([system, asked]) => system !== "multus" && asked.has("entries"));
  const named = new Set(others.flatMap(([, asked]) => Object.keys(placesIn(asked))));
  const given = givenIn(annotations);
  const isGiven = (name: string, its: readonly Address[]) => sameSet(saidOf(given, name) ?? [], its);
  const left = Object.entries(placesIn(multus)).filter(
    ([name, its]) => !named.has(name) || !isGiven(name, its),
  );
  const interfaces = multus.get("interfaces");
  if (left.length === 0) {
    multus.delete("entries");
    multus.delete("interfaces");
  } else if (interfaces !== undefined) {
    multus.set("entries", { ...entries, value: [left.flatMap(([, addresses]) => addresses)] });
    multus.set("interfaces", { ...interfaces, value: Object.fromEntries(left) });
  }
}

/** No more than a claim can have: a list of more is none of Berth's. */
const MOST_GIVEN = 17;

function givenIn({ [ASSIGNED_ADDRESSES]: words = "" }: Labels): Interfaces {
  const { addresses, interfaces } = parseAddresses(words.split(",", MOST_GIVEN));
  return interfaces ?? { [FIRST_INTERFACE]: addresses };
}

function placesIn(asked: Aspects): Interfaces {
  const { entries, interfaces } = spoken(asked);
  return interfaces ?? { [FIRST_INTERFACE]: entries.flat() };
}

/** What one annotation asks for. */
export function readOne(
  { key, read }: AnnotationFormat,
  annotations: Labels,
  namespace?: string,
): Request | Refusal {
  const value = annotations[key] ?? "";
  return value.length > LONGEST_VALUE
    ? bad(key, `it is longer than ${LONGEST_VALUE} characters`)
    : read(value, key, annotations, namespace);
}

/** Of one system: pools of one family and of the other are those of both. */
function join(asked: Aspects, said: Request, key: string): Refusal | undefined {
  const { entries, interfaces, ...rest } = said;
  const placed = { ...(entries && { entries }), ...(interfaces && { interfaces }) };
  const clash = joinAddresses(
    asked,
    new Map(Object.entries(placed).map(([of, value]) => [of, { key, value }])),
  );
  if (clash !== undefined) return clash;
  for (const [aspect, value] of Object.entries(rest)) {
    const before = asked.get(aspect);
    const joined = before === undefined ? value : joinedValue(aspect, before.value, value);
    if (joined === undefined) return disagreement(key, before?.key ?? key);
    asked.set(aspect, { key, value: joined });
  }
  return undefined;
}

/** Of both: those of each interface, which are either the same or of one of the two alone. */
function joinAddresses(all: Aspects, asked: Aspects): Refusal | undefined {
  const [before, said] = [all.get("entries"), asked.get("entries")];
  if (said === undefined) return undefined;
  const united = before === undefined ? spoken(asked) : unitedAddresses(spoken(all), spoken(asked));
  if (united === undefined || isTwiceIn(united)) return disagreement(said.key, before?.key ?? said.key);
  for (const [aspect, value] of Object.entries(united)) {
    const { key } = asked.get(aspect) ?? all.get(aspect) ?? said;
    all.set(aspect, { key, value });
  }
  return before === undefined ? undefined : tooManyIn(united.entries, said.key);
}

/** One address on two interfaces, or for two pods, is a contradiction, too. */
function isTwiceIn({ entries }: SaidAddresses): boolean {
  return (repeated(entries, "") ?? twiceIn(entries, "")) !== undefined;
}

function spoken(aspects: Aspects): SaidAddresses {
  const interfaces = aspects.get("interfaces")?.value as Interfaces | undefined;
  const entries = aspects.get("entries")?.value as readonly AddressEntry[];
  return { entries, ...(interfaces && { interfaces }) };
}

/** Beside what names an interface, what names none is of the first. */
function placeRest(all: Aspects): Refusal | undefined {
  const [pools, byInterface] = [all.get("pools"), all.get("interfacePools")];
  const [entries, interfaces] = [all.get("entries"), all.get("interfaces")];
  if (byInterface === undefined && interfaces === undefined) return undefined;
  if (entries !== undefined && interfaces === undefined) {
    const rows = entries.value as readonly AddressEntry[];
    all.set("interfaces", { key: entries.key, value: { [FIRST_INTERFACE]: rows.flat() } });
  }
  if (pools === undefined) return undefined;
  const named = (byInterface?.value ?? {}) as InterfacePools;
  const value = unitedPools({ [FIRST_INTERFACE]: pools.value as readonly string[] }, named);
  if (value === undefined) return disagreement(pools.key, byInterface?.key ?? pools.key);
  all.set("interfacePools", { key: byInterface?.key ?? pools.key, value });
  all.delete("pools");
  return undefined;
}

function joinedValue(aspect: string, before: unknown, value: unknown): unknown {
  if (aspect === "retention") return { ...(before as object), ...(value as object) };
  if (aspect === "pools" && areOfOtherFamilies(before as string[], value as string[]))
    return [...(before as string[]), ...(value as string[])];
  if (aspect === "interfacePools") return unitedPools(before as InterfacePools, value as InterfacePools);
  return meaningOf(aspect, before) === meaningOf(aspect, value) ? before : undefined;
}

/** Pools of a family that the pod is not to have would be passed over. */
function poolsOfOtherFamily(all: Aspects): Refusal | undefined {
  const [pools, families] = [all.get("pools"), all.get("families")];
  const named = pools ?? all.get("interfacePools");
  if (named === undefined || families === undefined) return undefined;
  const wanted = families.value as readonly Family[];
  const names = Object.values(named.value as InterfacePools | readonly string[]).flat();
  const isUnwanted = (name: string) => {
    const family = familyOfPart(name);
    return family !== undefined && !wanted.includes(family);
  };
  return names.some(isUnwanted) ? disagreement(families.key, named.key) : undefined;
}

/** Other systems say families of the pod's first interface, and Berth's own annotation those of all. */
function familiesOfFirst(all: Aspects): Refusal | undefined {
  const [families, byInterface] = [all.get("families"), all.get("interfacePools")];
  const asked = {
    interfaces: all.get("interfaces")?.value as Interfaces | undefined,
    interfacePools: byInterface?.value as InterfacePools | undefined,
  };
  if (families === undefined || families.key === FAMILIES || !hasFurtherInterfaces(asked)) return undefined;
  const pools = withFirstOfFamilies(asked, families.value as readonly Family[], families.key);
  if (isRefusal(pools)) return pools;
  if (byInterface !== undefined) all.set("interfacePools", { ...byInterface, value: pools });
  all.delete("families");
  return undefined;
}

/** Of several of one family on an interface it would not be known which one another address is for. */
function fallbackOnInterfaces(all: Aspects): Refusal | undefined {
  const [fallback, interfaces] = [all.get("fallback"), all.get("interfaces")];
  if (fallback === undefined || interfaces === undefined) return undefined;
  const { entries } = spoken(all);
  const lists = Object.values(interfaces.value as Interfaces).map((list) => new Set(list));
  const isTwice = entries.some((entry) =>
    lists.some((list) => {
      const its = entry.filter((address) => list.has(address));
      return new Set(its.map(familyOf)).size < its.length;
    }),
  );
  const words = `it cannot stand beside several addresses of one family on an interface (${interfaces.key}); leave one of the two out`;
  return isTwice ? bad(fallback.key, words) : undefined;
}

function areOfOtherFamilies(some: readonly string[], others: readonly string[]): boolean {
  const areOf = (names: readonly string[], family: Family) =>
    names.every((name) => familyOfPart(name) === family);
  return (areOf(some, "IPv4") && areOf(others, "IPv6")) || (areOf(some, "IPv6") && areOf(others, "IPv4"));
}

/** Of two systems: what both speak of is the same. */
function agree(all: Aspects, asked: Aspects): Refusal | undefined {
  const clash = countedOtherwise(all, asked) ?? joinAddresses(all, asked);
  if (clash !== undefined) return clash;
  for (const [aspect, said] of asked) {
    const before = all.get(aspect);
    if (aspect === "entries" || aspect === "interfaces") continue;
    const value = before === undefined ? said.value : agreedValue(aspect, before.value, said.value);
    if (value === undefined) return disagreement(said.key, before?.key ?? said.key);
    all.set(aspect, before !== undefined && value === before.value ? before : { ...said, value });
  }
  return undefined;
}

/** Undefined: the two differ. */
function agreedValue(aspect: string, before: unknown, said: unknown): unknown {
  if (aspect === "interfacePools") return unitedPools(before as InterfacePools, said as InterfacePools);
  if (aspect !== "retention")
    return meaningOf(aspect, before) === meaningOf(aspect, said) ? before : undefined;
  const was = before as Record<string, unknown>;
  const differs = Object.entries(said as object).some(
    ([part, value]) => was[part] !== undefined && was[part] !== value,
  );
  return differs ? undefined : { ...was, ...(said as object) };
}

/** Of two lists one counts from the first ordinal, and the other from 0. */
function countedOtherwise(all: Aspects, asked: Aspects): Refusal | undefined {
  const [before, said] = [all.get("entries"), asked.get("entries")];
  if (before === undefined || said === undefined) return undefined;
  const isList = (said.value as readonly unknown[]).length > 1;
  const isSame = asked.has("fromOrdinalZero") === all.has("fromOrdinalZero");
  if (isSame || !isList) return undefined;
  const words = `its list and that of ${before.key} count differently: one from ordinal 0, the other from the set's first ordinal; write both in the words of one system`;
  return bad(said.key, words);
}

function disagreement(key: string, other: string): Refusal {
  return bad(key, `it disagrees with ${other}; keep one of the two`);
}

/** The order of families means nothing. */
function meaningOf(aspect: string, value: unknown): string {
  return JSON.stringify(aspect === "families" ? (value as string[]).toSorted() : value);
}
