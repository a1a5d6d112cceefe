// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, familyOf, parseAddress } from "../ip/address.ts";
import { sizeOf } from "../ip/ip-range.ts";
import { type Block, isHole } from "../model/block.ts";
import { claimKey, isBound } from "../model/claim.ts";
import type { Reservation } from "../model/reservation.ts";
import { familiesOf, intervalsOf, type Pool, unavailableByDefault } from "../pool/pool.ts";
import { type UsageByFamily, unused } from "../pool/pool-figures.ts";
import { ownedIn } from "./block-index.ts";
import type { RecordCache } from "./cache.ts";

/** What a pool's addresses are used for. */
export interface PoolUsage {
  readonly byFamily: UsageByFamily;
  readonly reserved: number;
  /** Some that are reserved and whose they are, for messages: address (claim). */
  readonly some: readonly string[];
}

export const UNUSED: PoolUsage = { byFamily: unused(), reserved: 0, some: [] };

/** Holders that a message names. */
const NAMED = 3;
/** Records counted in one go, in 1 ms or so. */
const SLICE = 500;

interface Count {
  byFamily: ReturnType<typeof unused>;
  reserved: number;
  some: string[];
}
type Counts = Map<string, Count>; // pool -> use

/** By pool, what its addresses are used for; `rest` lets others have their turn between slices. */
export async function countPoolUsage(
  cache: RecordCache,
  rest: () => Promise<void>,
): Promise<ReadonlyMap<string, PoolUsage>> {
  const usage: Counts = new Map();
  await each(cache.reservations(), rest, ({ record }) => count(usage, record));
  await each(cache.blocks(), rest, ({ record }) => {
    if (countsItself(cache, record)) countBlock(usage, record);
  });
  await each(cache.claims(), rest, ({ record }) => {
    if (!isBound(record)) return;
    for (const address of record.addresses) {
      const use = usage.get(poolHolding(cache, address, record.nonce) ?? "");
      if (use !== undefined) use.byFamily[familyOf(address)].bound++;
    }
  });
  return usage;
}

/** A single address inside a block counts for that block, unless it is a hole of it. */
function countsItself(cache: RecordCache, record: Block): boolean {
  const around = record.within === undefined ? undefined : cache.block(record.within)?.record;
  const address = parseAddress(record.cidr.split("/")[0] ?? "");
  return around === undefined || address === undefined || isHole(around, address);
}

/** Addresses of one family of the pool that owners of its blocks have for themselves, used or not, or that cool with their block. */
export function countInBlocks(cache: RecordCache, pool: string, family: Family): bigint {
  let sum = 0n;
  for (const { record } of cache.blocksOf(pool)) {
    if (!countsItself(cache, record)) continue;
    const owned = ownedIn(record);
    if (owned.family !== family) continue;
    for (const interval of owned.intervals) sum += sizeOf(interval);
  }
  return sum;
}

async function each<T>(
  records: Iterable<T>,
  rest: () => Promise<void>,
  look: (record: T) => void,
): Promise<void> {
  let n = 0;
  for (const record of records) {
    if (n++ % SLICE === SLICE - 1) await rest();
    look(record);
  }
}

function count(usage: Counts, { address, pool, claim, releasedAt }: Reservation): void {
  const use = usage.get(pool) ?? { byFamily: unused(), reserved: 0, some: [] };
  usage.set(pool, use);
  if (releasedAt !== undefined) {
    use.byFamily[familyOf(address)].cooling++;
    return;
  }
  use.byFamily[familyOf(address)].reserved++;
  use.reserved++;
  if (use.some.length < NAMED) use.some.push(`${address} (${claimKey(claim)})`);
}

function countBlock(usage: Counts, block: Block): void {
  const { pool } = block;
  const { family, intervals } = ownedIn(block);
  const use = usage.get(pool) ?? { byFamily: unused(), reserved: 0, some: [] };
  usage.set(pool, use);
  const owned = intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);
  use.byFamily[family].inBlocks = (use.byFamily[family].inBlocks ?? 0) + Number(owned);
}

function poolHolding(cache: RecordCache, address: Address, nonce: string): string | undefined {
  const reservation = cache.reservation(address)?.record;
  return reservation?.nonce === nonce && reservation.releasedAt === undefined ? reservation.pool : undefined;
}

/** The families of which every address that may be had without naming it is taken. A pool that is reserved whole, such as one of MAC addresses, has no such family. */
export function ranOutOf(cache: RecordCache, pool: Pool): readonly Family[] {
  return exhaustedOf(cache, pool).filter(
    (family) => unavailableByDefault(pool, family).size < sizeOfFamily(pool, family),
  );
}

function sizeOfFamily(pool: Pool, family: Family): bigint {
  return intervalsOf(pool, family).reduce((sum, interval) => sum + sizeOf(interval), 0n);
}

/** How many addresses of the family a request that names none might have, were none taken, and how many of them it may have now. */
export function unnamed(
  cache: RecordCache,
  pool: Pool,
  family: Family,
): { readonly all: bigint; readonly free: bigint } {
  const size = sizeOfFamily(pool, family);
  return {
    all: size - unavailableByDefault(pool, family).size,
    free: size - cache.unpickable(pool, family).size,
  };
}

/** The families of which only addresses that must be named are left. */
export function exhaustedOf(cache: RecordCache, pool: Pool): readonly Family[] {
  return familiesOf(pool).filter(
    (family) => cache.unpickable(pool, family).size >= sizeOfFamily(pool, family),
  );
}
