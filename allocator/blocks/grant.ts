// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import { type Cidr, type Family, fromNumber, parseCidr, toNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { fullInterval, type Interval, sizeOf, without } from "../ip/ip-range.ts";
import { type Block, holesOf, holesText } from "../model/block.ts";
import { BlockSpace, blockLength, closedIn } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";
import { retryOnConflict } from "../store/retry-on-conflict.ts";
import type { Store, Stored } from "../store/store.ts";

type Books = Pick<Context, "store">;

/** For whom a block is, and of which family. */
export interface BlockRequest {
  readonly family: Family;
  readonly node: string;
  readonly nodeUID: string;
}

/** So many addresses are read one by one; of more all reservations are listed. */
const MOST_READS = 64n;

/**
 * Makes a block of the pool the node's: the first that nobody has, none of `known` (numbers of blocks, which is
 * extended by what turns out to be taken). Undefined: none is free, or the pool has no blocks of the family.
 */
export async function grantBlock(
  books: Books,
  pool: Pool,
  request: BlockRequest,
  known: IntervalSet,
): Promise<Stored<"block"> | undefined> {
  const { family, node, nodeUID } = request;
  const length = blockLength(pool, family);
  if (length === undefined || pool.disabled) return undefined;
  const space = new BlockSpace(pool, family, length);
  for (const cidr of space.free(known, node)) {
    known.add(space.numberOf(cidr));
    const holes = holesText(closedIn(pool, cidr), family);
    const made = await books.store.create("block", {
      cidr: cidr.text,
      pool: pool.name,
      node,
      nodeUID,
      holes,
    });
    if (made.kind === "exists") continue;
    const granted = await finishGrant(books, made.stored);
    if (granted?.record.node === node) return granted;
  }
  return undefined;
}

/**
 * Grants a block that was made: reads the reservations in it, which are holes from here on, and compares and sets. Whoever
 * comes upon a block that is not granted may go on with it, at any time. Undefined: it is gone, or had nothing to give and
 * was taken away again.
 */
export async function finishGrant(
  { store }: Books,
  made: Stored<"block">,
): Promise<Stored<"block"> | undefined> {
  const change = { kind: "block", key: made.key, doing: "it was granted", seen: made } as const;
  return await retryOnConflict(store, change, async (seen) => {
    if (seen === undefined || seen.record.granted === true) return seen;
    const granted = await holed(store, seen.record);
    if (granted === undefined)
      return (await store.remove("block", seen)).kind === "removed" ? undefined : "conflict";
    const result = await store.replace("block", seen, granted);
    return result.kind === "replaced" ? result.stored : "conflict";
  });
}

/** Granted, without what is reserved in it; undefined: nothing is left. */
async function holed(store: Store, block: Block): Promise<Block | undefined> {
  const cidr = parseCidr(block.cidr);
  if (cidr === undefined) throw new BerthError("INTERNAL", `${block.cidr} is no block`);
  const whole = fullInterval(cidr);
  const holes = holesOf(block);
  for (const n of await reservedIn(store, cidr, without([whole], holes))) holes.add(n);
  if (without([whole], holes).length === 0) return undefined;
  return { ...block, holes: holesText(holes, cidr.family), granted: true };
}

/** The addresses of the intervals that are reserved, in whatever way: what cools or is marked may be taken back. */
async function reservedIn(
  store: Store,
  cidr: Cidr,
  intervals: readonly Interval[],
): Promise<readonly bigint[]> {
  const count = intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);
  if (count > MOST_READS) return await listedIn(store, cidr, intervals);
  const found: bigint[] = [];
  for (const { first, last } of intervals) {
    for (let n = first; n <= last; n++) {
      if (await isReserved(store, cidr.family, n)) found.push(n);
    }
  }
  return found;
}

async function listedIn(
  store: Store,
  cidr: Cidr,
  intervals: readonly Interval[],
): Promise<readonly bigint[]> {
  const asked = new IntervalSet();
  for (const interval of intervals) asked.addInterval(interval);
  const found: bigint[] = [];
  for await (const { record } of store.list("reservation")) {
    const isOf = record.address.includes(":") === (cidr.family === "IPv6");
    if (isOf && asked.has(toNumber(record.address))) found.push(toNumber(record.address));
  }
  return found;
}

/** A reservation that cannot be read is somebody's. */
async function isReserved(store: Store, family: Family, n: bigint): Promise<boolean> {
  try {
    return (await store.get("reservation", fromNumber(n, family))) !== undefined;
  } catch (error) {
    if (error instanceof BerthError && error.code === "STATE_CORRUPT") return true;
    throw error;
  }
}
