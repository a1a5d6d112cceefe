// SPDX-License-Identifier: Apache-2.0

import { isCorrupt, isRefusal } from "../base/errors.ts";
import { type Cidr, type Family, familyOf, fromNumber, toNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { type Interval, numbersOf, sizeOf } from "../ip/ip-range.ts";
import type { Block } from "../model/block.ts";
import { intervalsOf, parseStoredPool } from "../pool/pool.ts";
import type { Store } from "../store/store.ts";

/** Which addresses of the intervals of a block are reserved, in whatever way: what cools or is marked may be taken back. */
export type Reader = (...asked: BlockPart) => Promise<readonly bigint[]>;
type BlockPart = readonly [cidr: Cidr, intervals: readonly Interval[]];

/** So many addresses are read one by one, however many reservations there are; beyond that it depends on their number. */
export const MOST_READS = 64;

/** What keeps a block of this kind from being given, as of now. */
export async function readerFor(store: Store, { use, pool }: Block): Promise<Reader> {
  return use === undefined ? readerOf(store) : await takenFrom(store, pool);
}

/**
 * What keeps a CIDR of the pool from being given whole, as of now: addresses that are reserved, and those that another pool has,
 * which two replicas may have admitted at one moment. Of each interval the first such address: it may have more than can be walked over.
 */
export async function takenFrom(store: Store, pool: string): Promise<Reader> {
  const others = { IPv4: new IntervalSet(), IPv6: new IntervalSet() };
  for await (const { record } of store.list("pool")) {
    const other = record.name === pool ? undefined : parseStoredPool(record);
    if (other === undefined || isRefusal(other)) continue;
    for (const family of other.families)
      for (const interval of intervalsOf(other, family)) others[family].addInterval(interval);
  }
  const reserved = await reservedNow(store);
  return async (cidr, intervals) => {
    const firstIn = (set: IntervalSet) =>
      intervals.flatMap(({ first, last }) => set.nextTaken(first, last) ?? []);
    const foreign = firstIn(others[cidr.family]);
    if (foreign.length > 0) return foreign;
    return "error" in reserved
      ? await fewRead(store, reserved.error, [cidr, intervals])
      : firstIn(reserved[cidr.family]);
  };
}

/** Where reservations cannot be listed, because one of them cannot be read, so many are looked at for one CIDR at most. */
const MOST_EACH = 4096n;

async function fewRead(
  store: Store,
  error: unknown,
  [cidr, intervals]: BlockPart,
): Promise<readonly bigint[]> {
  if (intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n) > MOST_EACH) throw error;
  return await readEach(store, cidr, intervals);
}

/** Reads when it is asked: address by address, or a list of all. */
export function readerOf(store: Store): Reader {
  return async (cidr, intervals) => {
    const count = intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);
    const read =
      count > MOST_READS ? await listing(store) : (...asked: BlockPart) => readEach(store, ...asked);
    return await read(cidr, intervals);
  };
}

/** What is reserved as of now. Where one reservation cannot be read it is looked at address by address. */
export async function listing(store: Store): Promise<Reader> {
  const taken = await reservedNow(store);
  if ("error" in taken) return (...asked) => readEach(store, ...asked);
  return async (cidr, intervals) => [...numbersOf(intervals)].filter((n) => taken[cidr.family].has(n));
}

/** The error: one of them cannot be read. */
async function reservedNow(store: Store): Promise<Record<Family, IntervalSet> | { readonly error: unknown }> {
  const taken = { IPv4: new IntervalSet(), IPv6: new IntervalSet() };
  try {
    for await (const { record } of store.list("reservation"))
      taken[familyOf(record.address)].add(toNumber(record.address));
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return { error };
  }
  return taken;
}

async function readEach(store: Store, ...[cidr, intervals]: BlockPart): Promise<readonly bigint[]> {
  const found: bigint[] = [];
  for (const n of numbersOf(intervals)) if (await isReserved(store, cidr.family, n)) found.push(n);
  return found;
}

/** A reservation that cannot be read is somebody's. */
async function isReserved(store: Store, family: Family, n: bigint): Promise<boolean> {
  try {
    return (await store.get("reservation", fromNumber(n, family))) !== undefined;
  } catch (error) {
    if (isCorrupt(error)) return true;
    throw error;
  }
}
