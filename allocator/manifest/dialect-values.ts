// SPDX-License-Identifier: Apache-2.0
// How other systems write the values of their annotations.

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { FAMILIES, type Family, familyOf, parseAddress } from "../ip/address.ts";
import { writtenAddress, writtenRange } from "../ip/written-address.ts";
import type { AddressEntry, Request } from "../model/address-request.ts";
import { FIRST_INTERFACE, isInterfaceName } from "../model/interfaces.ts";
import { bad, MAX_ENTRIES, namesIn, parsedJson, quote, readEntry, repeated } from "./annotation-values.ts";
import { asGoReads } from "./fields.ts";
import { MAX_INTERFACES } from "./interface-values.ts";
import { familyOfPart, namedPools, partsOfFamily } from "./pool-names.ts";

/** How a value is read; the pod's other annotations say more about it, and its namespace, where that is known. */
export type DialectReader = (
  value: string,
  key: string,
  annotations: Labels,
  namespace?: string,
) => Request | Refusal;

/** A value that is understood and cannot be served, and whose addresses and pools it names: they may be another system's. */
interface Unserved extends Refusal {
  readonly asks: Request;
}

export function isUnserved(read: Request | Refusal): read is Unserved {
  return isRefusal(read) && "asks" in read;
}

export function unserved(key: string, why: string, asks: Request): Unserved {
  return { ...bad(key, why), asks };
}

/** `a` or, of two families, `a,b`: the addresses of one pod. */
export const readOnePod: DialectReader = (value, key) => {
  const read = readEntry(value.trim(), key, 0);
  if (isRefusal(read)) return read;
  const [entry, ...more] = read;
  if (entry === undefined || more.length > 0)
    return bad(key, `${quote(value)} is not the address of one pod`);
  return { entries: [entry] };
};

/** A list of pods' addresses, or of one pod's two; what is no address is the name of a pool. */
export const readOvnPool: DialectReader = (value, key) => {
  const separator = value.includes(";") ? ";" : ",";
  const items = entriesIn(value, separator);
  if (isNameOfPool(value)) return readName(value, key, {});
  const [first = "", second = ""] = items;
  const isPair = separator === "," && items.length === 2 && isOfTwoFamilies(first, second);
  return ordinalList(isPair ? [value] : items, key);
};

/** Of a value of kube-ovn's that may be a list of addresses or a name, in which there may be dots beside digits. */
export function isNameOfPool(value: string): boolean {
  return !/[,;]/.test(value) && parseAddress(value.trim()) === undefined;
}

function isOfTwoFamilies(a: string, b: string): boolean {
  const [one, other] = [parseAddress(a), parseAddress(b)];
  return one !== undefined && other !== undefined && familyOf(one) !== familyOf(other);
}

/** `a,b,c`, by the last number of the pods' names; the two addresses of one pod are `v4/v6`. */
export const readHybridPool: DialectReader = (value, key) => ordinalList(entriesIn(value, ","), key);

/** One more than are taken, if there are as many. */
export function entriesIn(value: string, separator: string): readonly string[] {
  return value.split(separator, MAX_ENTRIES + 1).map((item) => item.trim());
}

/** The first entry is that of ordinal 0, whatever `ordinals.start` is. */
export function ordinalList(
  items: readonly string[],
  key: string,
  readItem: typeof readEntry = readPlainEntry,
): Request | Refusal {
  if (items.length > MAX_ENTRIES) return bad(key, `it has more than ${MAX_ENTRIES} entries`);
  const entries: AddressEntry[] = [];
  for (const [n, item] of items.entries()) {
    const read = readItem(item, key, n);
    if (isRefusal(read)) return read;
    entries.push(...read);
  }
  const again = repeated(entries, key);
  if (again !== undefined) return again;
  return entries.length === 1 ? { entries } : { entries, fromOrdinalZero: true };
}

/** These systems know no ranges. */
function readPlainEntry(item: string, key: string, n: number): ReturnType<typeof readEntry> {
  const range = writtenRange(item);
  if (range !== undefined)
    return bad(
      key,
      `entry ${n + 1}, ${quote(item)}, is a range, which this list does not have; write each address, or the list into berth.dev/ips, which takes ranges`,
    );
  return item.includes("-") ? bad(key, `${quote(item)} is not an address`) : readEntry(item, key, n);
}

/** Names with commas. */
export const readNames: DialectReader = (value, key) => namedPools(namesIn(value, ","), key);

/** With `/` as well, as HybridNet sets the two families apart. */
export const readHybridNames: DialectReader = (value, key) => {
  const written = writtenAddress(value.trim());
  return namedPools(written === undefined ? namesIn(value, /[,/]/) : [value], key);
};

export const readName: DialectReader = (value, key) => namedPools([value], key);

/** A JSON list of names or CIDRs, of which only the addresses of one family count. */
export function readListOf(family: Family): DialectReader {
  return (value, key) => {
    const names = textsIn(value);
    return names === undefined || names.length === 0
      ? bad(key, `${quote(value)} is not a JSON list of names, such as '["pool-1"]'`)
      : poolsOf(names, family, key);
  };
}

/** One name, of which only the addresses of one family count. */
export function readNameOf(family: Family): DialectReader {
  return (value, key) => poolsOf([value], family, key);
}

/** A part of a pool is written `db/IPv4`, as in `berth.dev/pools`. */
function poolsOf(names: readonly string[], family: Family, key: string): Request | Refusal {
  const read = namedPools(names, key);
  if (isRefusal(read)) return read;
  const { pools = [] } = read;
  const other = pools.find((name) => (familyOfPart(name) ?? family) !== family);
  if (other !== undefined) return bad(key, `${quote(other)} is not of ${family}`);
  return { pools: partsOfFamily(pools, family) };
}

/** '["IPv4","IPv6"]' */
export const readFamilyList: DialectReader = (value, key) => {
  const names = textsIn(value) ?? [];
  const families = FAMILIES.filter((family) => names.includes(family));
  return families.length === names.length && families.length > 0
    ? { families }
    : bad(key, `${quote(value)} is not a JSON list of IPv4 and IPv6, such as '["IPv4"]'`);
};

const FAMILY_WORDS: Readonly<Record<string, readonly Family[]>> = {
  ipv4: ["IPv4"],
  ipv4only: ["IPv4"],
  ipv6: ["IPv6"],
  ipv6only: ["IPv6"],
  dual: FAMILIES,
  dualstack: FAMILIES,
};

/** `ipv4`, `IPv4Only`, `DualStack` and so on, in any letter case. */
export const readFamilyWord: DialectReader = (value, key) => {
  const families = familiesIn(value);
  return families === undefined
    ? bad(key, `${quote(value)} is not known here; write IPv4, IPv6 or DualStack`)
    : { families };
};

/** Undefined: it is none of the words. */
export function familiesIn(value: string): readonly Family[] | undefined {
  const word = value.trim().toLowerCase();
  return Object.hasOwn(FAMILY_WORDS, word) ? FAMILY_WORDS[word] : undefined;
}

/** {"ipv4":["a"],"ipv6":["b"]} */
export const readSpiderObject: DialectReader = (value, key) => spiderElements(value, key, false);

/** [{"interface":"eth0","ipv4":["a"]}]: of each interface; of a single one that is not named, the pod's first. */
export const readSpiderList: DialectReader = (value, key) => spiderElements(value, key, true);

function spiderElements(value: string, key: string, isList: boolean): Request | Refusal {
  const read = elementsIn(value, isList);
  const shape = isList ? '[{"interface":"eth0","ipv4":["pool-1"]}]' : '{"ipv4":["pool-1"],"ipv6":["pool-2"]}';
  if (read.length === 0 || !read.every(isElement))
    return bad(key, `${quote(value)} is not JSON such as '${shape}'`);
  if (read.length > MAX_INTERFACES) return bad(key, `it names more than ${MAX_INTERFACES} interfaces`);
  const byInterface = new Map<string, readonly string[]>(); // interface -> names of pools
  for (const element of read) {
    const name = element.interface || FIRST_INTERFACE;
    const pools = poolsOfElement(element, key, shape);
    if (isRefusal(pools)) return pools;
    if (!isInterfaceName(name))
      return bad(key, `${quote(name)} is not the name of an interface, such as net1`);
    if (byInterface.has(name)) return bad(key, `it has ${name} twice; name the interface of each element`);
    byInterface.set(name, pools);
  }
  const [first = []] = byInterface.values();
  const isFirst = byInterface.size === 1 && byInterface.has(FIRST_INTERFACE);
  return isFirst ? { pools: first } : { interfacePools: Object.fromEntries(byInterface) };
}

function poolsOfElement(element: SpiderElement, key: string, shape: string): readonly string[] | Refusal {
  const parts = familyPools(element, key);
  const wrong = parts.find((part) => isRefusal(part));
  if (wrong !== undefined) return wrong;
  const names = parts.flatMap((part) => (isRefusal(part) ? [] : (part.pools ?? [])));
  return names.length === 0 ? bad(key, `it names no pool; write '${shape}'`) : names;
}

interface SpiderElement {
  readonly interface?: string;
  readonly ipv4?: readonly string[];
  readonly ipv6?: readonly string[];
}

function elementsIn(value: string, isList: boolean): readonly unknown[] {
  const parsed = parsedJson(value);
  const elements: unknown = isList ? parsed : [parsed];
  return Array.isArray(elements) ? elements.map(asRead) : [];
}

/** Go takes a field that is null for one that is absent. */
function asRead(element: unknown): unknown {
  if (typeof element !== "object" || element === null || Array.isArray(element)) return element;
  const fields = Object.entries(asGoReads(element, ["interface", "ipv4", "ipv6"]));
  return Object.fromEntries(fields.filter(([, value]) => value !== null));
}

function isElement(value: unknown): value is SpiderElement {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { interface: name, ipv4, ipv6 } = value as Record<string, unknown>;
  const isNames = (one: unknown) => one === undefined || (Array.isArray(one) && one.every(isText));
  return (name === undefined || isText(name)) && isNames(ipv4) && isNames(ipv6);
}

function familyPools({ ipv4 = [], ipv6 = [] }: SpiderElement, key: string): (Request | Refusal)[] {
  return [
    ...(ipv4.length === 0 ? [] : [poolsOf(ipv4, "IPv4", key)]),
    ...(ipv6.length === 0 ? [] : [poolsOf(ipv6, "IPv6", key)]),
  ];
}

/** `+1` is as many as there are pods and some more, which is what Berth gives anyway. */
export const readIpNumber: DialectReader = (value, key) => {
  if (/^\+\d{1,6}$/.test(value)) return {};
  return /^\d{1,6}$/.test(value)
    ? unserved(
        key,
        "berth makes no pool for one workload; write a list into berth.dev/ips, which is for its pods alone",
        {},
      )
    : bad(key, `${quote(value)} is no number such as 5 or +1`);
};

/** Whether the addresses go with the workload. */
export const readReclaim: DialectReader = (value, key) => {
  const is = truth(value);
  if (is === undefined) return bad(key, `${quote(value)} is not known here; write "true" or "false"`);
  return { retention: { whenDeleted: is ? "Release" : "Retain" } };
};

/** Whether a pod that is made again has the address that it had. */
export const readRetain: DialectReader = (value, key) => {
  const is = truth(value);
  if (is === undefined) return bad(key, `${quote(value)} is not known here; write "true" or "false"`);
  return { sticky: is };
};

/** With Berth a pool that is named is the only one that serves, whatever it says. */
export const readTruth: DialectReader = (value, key) =>
  truth(value) === undefined ? bad(key, `${quote(value)} is not known here; write "true" or "false"`) : {};

function truth(value: string): boolean | undefined {
  return value === "true" || value === "false" ? value === "true" : undefined;
}

function textsIn(value: string): readonly string[] | undefined {
  const parsed = parsedJson(value);
  return Array.isArray(parsed) && parsed.every(isText) ? parsed : undefined;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
