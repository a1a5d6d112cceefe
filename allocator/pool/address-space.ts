// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import { invalidPool } from "../base/validation.ts";
import { type Address, FAMILIES, type Family, familyOf, toNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import {
  contains,
  type FamilyInterval,
  formatInterval,
  fullInterval,
  type Interval,
  intersection,
  merge,
  parseRange,
  type Range,
  readInterval,
  sizeOf,
  without,
} from "../ip/ip-range.ts";
import type { PoolSpec } from "./pool-spec.ts";

/** The addresses of a pool. What one range excludes, or has as its gateway, no other range of the pool gives either. */
export interface AddressSpace {
  readonly families: readonly Family[];
  /** Disjoint, in the order of the spec. */
  readonly ranges: readonly Range[];
  readonly gateways: ReadonlySet<Address>;
  /** Disjoint and ascending within a family. */
  readonly excluded: readonly FamilyInterval[];
  readonly reserved: readonly FamilyInterval[];
}

/** What a pool would do with an address: give it to anyone, on explicit request only, or never, and why. */
export type AddressClass = "open" | "reserved" | "excluded" | "gateway" | "outside";

/** Reads ranges and reserved addresses of a spec and what they mean together. */
export function readSpace(spec: Pick<PoolSpec, "ranges" | "reserved" | "nodeCIDRs">): AddressSpace | Refusal {
  if (spec.ranges.length === 0) return invalidPool("spec.ranges", "is empty; give at least one range");
  const ranges: Range[] = [];
  for (const [i, rangeSpec] of spec.ranges.entries()) {
    const range = parseRange(rangeSpec, `spec.ranges[${i}]`);
    if (isRefusal(range)) return range;
    ranges.push(spec.nodeCIDRs === undefined ? range : whole(range, rangeSpec));
  }
  const reserved = readReserved(spec.reserved ?? [], ranges);
  if (isRefusal(reserved)) return reserved;
  return (
    findOverlap(ranges) ?? {
      families: FAMILIES.filter((family) => ranges.some((range) => range.family === family)),
      ranges,
      gateways: new Set(ranges.flatMap((range) => range.gateway ?? [])),
      excluded: mergeFamilies(
        ranges.flatMap(({ family, excluded }) => excluded.map((interval) => ({ family, interval }))),
      ),
      reserved,
    }
  );
}

/** A CIDR of a node has network and broadcast addresses of its own: those of the range are like any other. */
function whole(range: Range, { from, to }: PoolSpec["ranges"][number]): Range {
  const { first, last } = fullInterval(range.cidr);
  return {
    ...range,
    first: from === undefined ? first : range.first,
    last: to === undefined ? last : range.last,
  };
}

function readReserved(
  texts: readonly string[],
  ranges: readonly Range[],
): readonly FamilyInterval[] | Refusal {
  const reserved: FamilyInterval[] = [];
  for (const [i, text] of texts.entries()) {
    const field = `spec.reserved[${i}]`;
    const read = readInterval(text, field);
    if (isRefusal(read)) return read;
    if (
      !ranges.some(
        (range) => range.family === read.family && intersection(range, read.interval) !== undefined,
      )
    ) {
      return invalidPool(
        field,
        `${formatInterval(read)} is outside every range of the pool; give addresses of a range`,
      );
    }
    reserved.push(read);
  }
  return mergeFamilies(reserved);
}

function mergeFamilies(intervals: readonly FamilyInterval[]): readonly FamilyInterval[] {
  return FAMILIES.flatMap((family) => {
    const own = intervals.filter((entry) => entry.family === family);
    return merge(own.map((entry) => entry.interval)).map((interval) => ({ family, interval }));
  });
}

/** Neighbours in ascending order suffice: if any two ranges overlap, then so do two neighbours. */
function findOverlap(ranges: readonly Range[]): Refusal | undefined {
  for (const family of FAMILIES) {
    const own = [...ranges.entries()].filter(([, range]) => range.family === family);
    own.sort(([, a], [, b]) => (a.first < b.first ? -1 : 1));
    for (const [k, [i, range]] of own.entries()) {
      const next = own[k + 1];
      const shared = next === undefined ? undefined : intersection(range, next[1]);
      if (next === undefined || shared === undefined) continue;
      const [low, high] = i < next[0] ? [i, next[0]] : [next[0], i];
      const words = formatInterval({ family, interval: shared });
      return invalidPool(
        `spec.ranges[${high}]`,
        `overlaps spec.ranges[${low}] in ${words}; give each address one range`,
      );
    }
  }
  return undefined;
}

/** The range whose [first, last] contains the address. */
export function rangeOf(space: AddressSpace, address: Address): Range | undefined {
  const family = familyOf(address);
  const n = toNumber(address);
  return space.ranges.find((range) => range.family === family && contains(range, n));
}

/** Whether the address is in the network of a range, be it beyond the addresses that the range gives. */
export function isInNetwork(space: Pick<AddressSpace, "ranges">, address: Address): boolean {
  const [family, n] = [familyOf(address), toNumber(address)];
  return space.ranges.some((range) => range.family === family && contains(fullInterval(range.cidr), n));
}

export function classify(space: AddressSpace, address: Address): AddressClass {
  const range = rangeOf(space, address);
  if (range === undefined) return "outside";
  if (space.gateways.has(address)) return "gateway";
  const n = toNumber(address);
  const isIn = ({ family, interval }: FamilyInterval) => family === range.family && contains(interval, n);
  if (space.excluded.some(isIn)) return "excluded";
  return space.reserved.some(isIn) ? "reserved" : "open";
}

/** [first, last] of the ranges of the family, in the order of the spec. */
export function intervalsOf(space: AddressSpace, family: Family): readonly Interval[] {
  return space.ranges.filter((range) => range.family === family).map(({ first, last }) => ({ first, last }));
}

/** How many addresses may be given at all: open and reserved ones. */
export function capacity(space: AddressSpace, family: Family): bigint {
  const all = intervalsOf(space, family).reduce((sum, interval) => sum + sizeOf(interval), 0n);
  return all - never(space, family).size;
}

/** Every address of the family that the pool gives: to anyone, or on explicit request. */
export function givenIn(space: AddressSpace, family: Family): IntervalSet {
  const given = new IntervalSet();
  for (const interval of without(merge(intervalsOf(space, family)), never(space, family)))
    given.addInterval(interval);
  return given;
}

/** What a picker must pass over besides what is taken: gateways, excluded and reserved addresses of the ranges. */
export function unavailableByDefault(space: AddressSpace, family: Family): IntervalSet {
  const runs = never(space, family);
  addWithin(runs, space.reserved, space, family);
  return runs;
}

function never(space: AddressSpace, family: Family): IntervalSet {
  const runs = new IntervalSet();
  addWithin(runs, space.excluded, space, family);
  for (const gateway of space.gateways) {
    if (familyOf(gateway) === family && rangeOf(space, gateway) !== undefined) runs.add(toNumber(gateway));
  }
  return runs;
}

/** Ranges are disjoint and intervals ascending, so that one walk over both finds all that they share. */
function addWithin(
  runs: IntervalSet,
  intervals: readonly FamilyInterval[],
  space: AddressSpace,
  family: Family,
): void {
  const own = intervalsOf(space, family).toSorted((a, b) => (a.first < b.first ? -1 : 1));
  let from = 0;
  for (const entry of intervals) {
    if (entry.family !== family) continue;
    while (from < own.length && (own[from]?.last ?? 0n) < entry.interval.first) from++;
    for (let i = from; i < own.length; i++) {
      const shared = intersection(own[i] as Interval, entry.interval);
      if (shared === undefined) break;
      runs.addInterval(shared);
    }
  }
}
