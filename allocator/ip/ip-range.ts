// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import { invalidPool, quote } from "../base/validation.ts";
import {
  type Address,
  bitsOf,
  type Cidr,
  type Family,
  familyOf,
  formatCidr,
  fromNumber,
  lastOf,
  parseAddress,
  parseCidr,
  readNumbers,
  toNumber,
} from "./address.ts";
import { addressOfMac, parseMac } from "./mac.ts";

/** Both ends belong to it. */
export interface Interval {
  readonly first: bigint;
  readonly last: bigint;
}

export interface FamilyInterval {
  readonly family: Family;
  readonly interval: Interval;
}

/** One entry of a pool's `ranges`, as it is written. */
export interface RangeSpec {
  readonly cidr: string;
  /** Default: the first usable address. */
  readonly from?: string;
  /** Default: the last usable address. */
  readonly to?: string;
  /** Never allocated. */
  readonly gateway?: string;
  /** Addresses, `a-b` or CIDRs that are never allocated. */
  readonly exclude?: readonly string[];
}

/** Addresses `first` to `last` of a network, reached with its prefix length and by its gateway. */
export interface Range {
  readonly family: Family;
  readonly cidr: Cidr;
  readonly prefixLength: number;
  readonly first: bigint;
  readonly last: bigint;
  readonly gateway?: Address;
  /** Disjoint, ascending; may reach beyond first and last. */
  readonly excluded: readonly Interval[];
}

/** ::ffff:0:0/96: numbers whose text is an IPv4 address, so that no IPv6 range may hold them. */
const MAPPED: Interval = { first: 0xffff00000000n, last: 0xffffffffffffn };

/** The addresses that `a`, `a-b` (both included) or a CIDR without host bits writes; undefined for anything else. */
export function parseInterval(text: string): FamilyInterval | undefined {
  if (text.includes("/")) {
    const network = readNumbers(text);
    if (network === undefined || network.hostBits) return undefined;
    return { family: network.family, interval: fullInterval(network) };
  }
  const dash = text.indexOf("-");
  const first = parseAddress(dash < 0 ? text : text.slice(0, dash));
  const last = dash < 0 ? first : parseAddress(text.slice(dash + 1));
  if (first === undefined || last === undefined || familyOf(first) !== familyOf(last)) return undefined;
  const interval = { first: toNumber(first), last: toNumber(last) };
  return interval.first > interval.last ? undefined : { family: familyOf(first), interval };
}

/** A range `a-b` whose ends are the wrong way round, as it was meant; undefined for any other text. */
export function turnedRound(text: string): string | undefined {
  const [first = "", last = "", ...more] = text.split("-", 3).map((end) => end.trim());
  const meant = more.length === 0 ? parseInterval(`${last}-${first}`) : undefined;
  return meant && formatInterval(meant);
}

/** `a` or `a-b`: what parseInterval reads. */
export function formatInterval({ family, interval }: FamilyInterval): string {
  const first = fromNumber(interval.first, family);
  return interval.first === interval.last ? first : `${first}-${fromNumber(interval.last, family)}`;
}

export function contains(interval: Interval, n: bigint): boolean {
  return n >= interval.first && n <= interval.last;
}

/** What two intervals share. */
export function intersection(a: Interval, b: Interval): Interval | undefined {
  let { first, last } = a;
  if (b.first > first) first = b.first;
  if (b.last < last) last = b.last;
  return first > last ? undefined : { first, last };
}

/** The fewest networks that are the interval together, in ascending order. */
export function networksOf({ first, last }: Interval, family: Family): readonly Cidr[] {
  const networks: Cidr[] = [];
  for (let base = first; base <= last; ) {
    let hostLength = 0;
    for (; hostLength < bitsOf(family); hostLength++) {
      const next = 1n << BigInt(hostLength + 1);
      if (base % next !== 0n || base + next - 1n > last) break;
    }
    const network = { family, base, prefixLength: bitsOf(family) - hostLength };
    networks.push({ ...network, hostBits: false, text: formatCidr(network) });
    base += 1n << BigInt(hostLength);
  }
  return networks;
}

/** Every number of the intervals, in their order. */
export function* numbersOf(intervals: readonly Interval[]): Generator<bigint, void, void> {
  for (const { first, last } of intervals) for (let n = first; n <= last; n++) yield n;
}

/** How many addresses. */
export function sizeOf(interval: Interval): bigint {
  return interval.last - interval.first + 1n;
}

/** Every number of the network, usable or not. */
export function fullInterval(cidr: Omit<Cidr, "text">): Interval {
  return { first: cidr.base, last: lastOf(cidr) };
}

/**
 * What may be given to a pod. IPv4 keeps network and broadcast; IPv6 keeps the subnet-router anycast address
 * (RFC 4291 section 2.6.1); networks of one or two addresses keep nothing (RFC 3021, RFC 6164).
 */
function usableOf(cidr: Cidr): Interval {
  const whole = fullInterval(cidr);
  if (bitsOf(cidr.family) - cidr.prefixLength <= 1) return whole;
  return { first: whole.first + 1n, last: cidr.family === "IPv4" ? whole.last - 1n : whole.last };
}

/** Reads one range and says what is wrong with it. `where` is its path: `spec.ranges[1]`. */
export function parseRange(spec: RangeSpec, where: string): Range | Refusal {
  const cidr = readNetwork(spec.cidr, `${where}.cidr`);
  if (isRefusal(cidr)) return cidr;
  if (cidr.family === "IPv6" && intersection(fullInterval(cidr), MAPPED) !== undefined) {
    return invalidPool(
      `${where}.cidr`,
      `${cidr.text} holds IPv4-mapped addresses (::ffff:0:0/96); give a smaller network`,
    );
  }
  const usable = usableOf(cidr);
  const first = readBound(spec.from, cidr, `${where}.from`) ?? usable.first;
  if (isRefusal(first)) return first;
  const last = readBound(spec.to, cidr, `${where}.to`) ?? usable.last;
  if (isRefusal(last)) return last;
  if (first > last) {
    const [from, to] = [fromNumber(first, cidr.family), fromNumber(last, cidr.family)];
    return invalidPool(`${where}.from`, `${from} is above ${where}.to ${to}; exchange them`);
  }
  const gateway = readGateway(spec.gateway, cidr, `${where}.gateway`);
  if (isRefusal(gateway)) return gateway;
  const excluded = readExclude(spec.exclude ?? [], cidr, `${where}.exclude`);
  if (isRefusal(excluded)) return excluded;
  const { family, prefixLength } = cidr;
  const range = { family, cidr, prefixLength, first, last, excluded };
  return gateway === undefined ? range : { ...range, gateway };
}

const MAC_LENGTH = "02:00:00:00:00:51".length;

/** A network without host bits. */
export function readNetwork(text: string, field: string): Cidr | Refusal {
  const cidr = parseCidr(text);
  if (cidr === undefined)
    return invalidPool(field, `${quote(text)} is not a CIDR such as 10.0.0.0/24 or fd00::/64${ofMac(text)}`);
  if (cidr.hostBits) return invalidPool(field, `${text} has host bits; write ${cidr.text}`);
  return cidr;
}

/** What to write in place of a MAC address, where it is one or begins like one. */
function ofMac(text: string): string {
  const mac = parseMac(text.slice(0, MAC_LENGTH));
  return mac === undefined
    ? ""
    : `; of MAC address ${mac} a pool has ${addressOfMac(mac)}, in a range of fe80::/64`;
}

/** An address of the family. */
export function readAddress(text: string, family: Family, field: string): Address | Refusal {
  const address = parseAddress(text);
  if (address === undefined) return invalidPool(field, `${quote(text)} is not an IP address${ofMac(text)}`);
  if (familyOf(address) !== family)
    return invalidPool(field, `${address} is ${familyOf(address)}; give an ${family} address`);
  return address;
}

function readInside(text: string, cidr: Cidr, field: string): bigint | Refusal {
  const address = readAddress(text, cidr.family, field);
  if (isRefusal(address)) return address;
  const n = toNumber(address);
  if (contains(fullInterval(cidr), n)) return n;
  return invalidPool(field, `${address} is outside ${cidr.text}; give an address of that network`);
}

function readBound(text: string | undefined, cidr: Cidr, field: string): bigint | Refusal | undefined {
  if (text === undefined) return undefined;
  const n = readInside(text, cidr, field);
  return isRefusal(n) ? n : (keptAt(cidr, n, field) ?? n);
}

function readGateway(text: string | undefined, cidr: Cidr, field: string): Address | Refusal | undefined {
  if (text === undefined) return undefined;
  const n = readInside(text, cidr, field);
  if (isRefusal(n)) return n;
  const kept = cidr.family === "IPv4" ? keptAt(cidr, n, field) : undefined; // a router may be the anycast address
  return kept ?? fromNumber(n, cidr.family);
}

function keptAt(cidr: Cidr, n: bigint, field: string): Refusal | undefined {
  const usable = usableOf(cidr);
  if (contains(usable, n)) return undefined;
  const lowest = cidr.family === "IPv4" ? "network" : "subnet-router anycast";
  const role = n < usable.first ? lowest : "broadcast";
  const bounds = formatInterval({ family: cidr.family, interval: usable });
  return invalidPool(
    field,
    `${fromNumber(n, cidr.family)} is the ${role} address of ${cidr.text}; give one of ${bounds}`,
  );
}

function readExclude(texts: readonly string[], cidr: Cidr, field: string): readonly Interval[] | Refusal {
  const intervals: Interval[] = [];
  for (const [i, text] of texts.entries()) {
    const read = readInterval(text, `${field}[${i}]`);
    if (isRefusal(read)) return read;
    if (read.family !== cidr.family || intersection(read.interval, fullInterval(cidr)) === undefined) {
      return invalidPool(`${field}[${i}]`, `${text} is outside ${cidr.text}; give addresses of that network`);
    }
    intervals.push(read.interval);
  }
  return merge(intervals);
}

/** An address, `a-b` or a CIDR. */
export function readInterval(text: string, field: string): FamilyInterval | Refusal {
  const interval = parseInterval(text);
  if (interval !== undefined) return interval;
  const cidr = parseCidr(text);
  if (cidr !== undefined) return invalidPool(field, `${text} has host bits; write ${cidr.text}`);
  const meant = turnedRound(text);
  if (meant !== undefined)
    return invalidPool(field, `${quote(text)} ends before it begins; write ${quote(meant)}`);
  return invalidPool(field, `${quote(text)} is not an address, a range such as 10.0.0.5-10.0.0.9, or a CIDR`);
}

/** The same numbers as disjoint intervals in ascending order. */
export function merge(intervals: readonly Interval[]): readonly Interval[] {
  const merged: Interval[] = [];
  for (const next of intervals.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    const last = merged.at(-1);
    if (last === undefined || next.first > last.last + 1n) merged.push(next);
    else if (next.last > last.last) merged[merged.length - 1] = { first: last.first, last: next.last };
  }
  return merged;
}

/** What is in the ascending intervals and in none of the others, which are ascending too. */
export function without(intervals: readonly Interval[], taken: Iterable<Interval>): readonly Interval[] {
  const left: Interval[] = [];
  const runs = [...taken];
  let at = 0;
  for (const { first, last } of intervals) {
    let from = first;
    while (at < runs.length && (runs[at]?.last ?? 0n) < first) at++;
    for (let i = at; i < runs.length; i++) {
      const run = runs[i] as Interval;
      if (run.first > last) break;
      if (run.first > from) left.push({ first: from, last: run.first - 1n });
      from = run.last + 1n;
    }
    if (from <= last) left.push({ first: from, last });
  }
  return left;
}
