// SPDX-License-Identifier: Apache-2.0

import { BerthError, isCorrupt, isRefusal, isStoreFault } from "../base/errors.ts";
import { inParallel } from "../base/parallel.ts";
import type { RecordCache } from "../cache/cache.ts";
import type { Context } from "../cache/context.ts";
import type { RecordReader } from "../cache/reader.ts";
import {
  type Address,
  type Cidr,
  type Family,
  familyOf,
  parseAddress,
  parseCidr,
  toNumber,
} from "../ip/address.ts";
import type { IntervalSet } from "../ip/interval-set.ts";
import { contains, fullInterval, merge, sizeOf, without } from "../ip/ip-range.ts";
import { type Block, holesOf, holesText, mayBeSingle, networkOfBlock } from "../model/block.ts";
import { isOfPool } from "../model/occupant.ts";
import { closedIn, cutSpace, openIn, singleOf } from "../pool/blocks.ts";
import { type Pool, parseStoredPool } from "../pool/pool.ts";
import { retryOnConflict } from "../store/retry-on-conflict.ts";
import type { Store, Stored } from "../store/store.ts";
import { listing, MOST_READS, type Reader, readerFor, readerOf, takenFrom } from "./reserved-reader.ts";

type StoreContext = Pick<Context, "store"> & { readonly view?: Pick<RecordReader, "occupants"> };

/** For whom a block is, and of which family. */
export interface BlockRequest {
  readonly family: Family;
  readonly node: string;
  readonly nodeUID: string;
  /** Where the node's object is to name it; absent: in no order. */
  readonly place?: number;
}

/** A page of 500 reservations costs what 20 reads do. */
const LISTED_PER_READ = 25;
/** Blocks that are made, or granted, at the same time. */
const AT_ONCE = 16;
/** So many faults, and nothing that went well: it is the pool. */
const MOST_FAULTS = 16;
/** CIDRs that are tried for one node where they are refused: a policy may be against some, by their names, or against the node. */
const MOST_REFUSED = 3;
/** What is reserved is looked at once for so many blocks: callers with more of them ask in lots. */
export const GRANTS_AT_ONCE = 256;

/**
 * Makes a block of the pool each node's: the first that nobody has, none of `known` (numbers of blocks, which is
 * extended by what turns out to be taken). All blocks are made first, and then the reservations are looked at once for
 * all of them. Gives the blocks that were granted, which may be fewer, and whom none could be made for.
 */
export async function grantBlocks(
  context: StoreContext & {
    readonly view: Pick<RecordCache, "reservationCount"> & Pick<RecordReader, "occupants">;
    readonly atOnce?: number;
  },
  pool: Pool,
  requests: readonly BlockRequest[],
  known: IntervalSet,
): Promise<Granted> {
  const { atOnce = AT_ONCE } = context;
  const { blocks, ...failed } = await makeBlocks(context, pool, requests, known);
  const addresses = blocks.reduce((sum, { record }) => sum + openCount(record), 0);
  const isListed = addresses > Math.max(MOST_READS, context.view.reservationCount / LISTED_PER_READ);
  const read =
    pool.spec.nodeCIDRs !== undefined && blocks.length > 0
      ? await takenFrom(context.store, pool.name)
      : isListed
        ? await listing(context.store)
        : readerOf(context.store);
  const first = { read, pool: blocks.length > 0 ? await poolNow(context.store, pool.name) : undefined };
  const granted = await inParallel(blocks, atOnce, (one) => finishGrant(context, one, first));
  return { granted: granted.flatMap((one) => one ?? []), ...failed };
}

/** Whom no block could be made for. */
interface FailedRequests {
  /** What was wrong with the first; absent: nothing. */
  readonly fault?: unknown;
  readonly refused: readonly BlockRequest[];
  /** Nothing went well before their turn came. */
  readonly untried: readonly BlockRequest[];
}

interface Granted extends FailedRequests {
  readonly granted: readonly Stored<"block">[];
}

/** What is wrong with one, a policy against its node say, says nothing of the next; where nothing goes well it is soon given up. */
async function makeBlocks(
  { atOnce = AT_ONCE, ...context }: StoreContext & { readonly atOnce?: number },
  pool: Pool,
  requests: readonly BlockRequest[],
  known: IntervalSet,
): Promise<FailedRequests & { readonly blocks: readonly Stored<"block">[] }> {
  const faults: unknown[] = [];
  const [refused, untried]: [BlockRequest[], BlockRequest[]] = [[], []];
  let isAnyMade = false;
  const made = await inParallel(requests, atOnce, async (one) => {
    if (!isAnyMade && faults.length >= MOST_FAULTS) return void untried.push(one);
    try {
      const block = await makeBlock(context, pool, one, known);
      if (block !== undefined) isAnyMade = true;
      return block;
    } catch (error) {
      if (isStoreFault(error)) throw error;
      faults.push(error);
      return void refused.push(one);
    }
  });
  return { blocks: made.flatMap((one) => one ?? []), fault: faults[0], refused, untried };
}

/** The record of a block that is not granted yet, where nobody has any. */
export async function makeBlock(
  { store, view }: StoreContext,
  pool: Pool,
  { family, node, nodeUID, place }: BlockRequest,
  known: IntervalSet,
): Promise<Stored<"block"> | undefined> {
  const space = cutSpace(pool, family);
  if (space === undefined || pool.disabled) return undefined;
  const use = pool.spec.nodeCIDRs?.use;
  const refused: unknown[] = [];
  for (const cidr of space.free(known, node)) {
    known.add(space.numberOf(cidr));
    const inUse = occupiedIn(view, pool, cidr).map((n) => ({ first: n, last: n }));
    if (use !== undefined && inUse.length > 0) continue; // it would not be whole
    const holes = use === undefined ? holesText(merge([...closedIn(pool, cidr), ...inUse]), family) : [];
    const named = { ...(use && { use }), ...(place !== undefined && { place }) };
    const record = { cidr: cidr.text, pool: pool.name, node, nodeUID, holes, ...named };
    const made = await created(store, record, refused);
    if (made !== undefined) return made;
  }
  if (refused.length > 0) throw refused[0];
  return undefined;
}

/**
 * Undefined: somebody has it, be it that nobody here can read that; or it is refused, which `refused` is told of, and another one
 * is to be tried.
 */
async function created(
  store: Store,
  record: Block,
  refused?: unknown[],
): Promise<Stored<"block"> | undefined> {
  try {
    const made = await store.create("block", record);
    return made.kind === "exists" ? undefined : made.stored;
  } catch (error) {
    if (isCorrupt(error)) return undefined;
    const isRefused = error instanceof BerthError && error.code === "WRITE_REFUSED";
    if (isRefused && refused !== undefined && refused.push(error) < MOST_REFUSED) return undefined;
    throw error;
  }
}

/** What others have, and not from Berth, is a hole as what is reserved: it may be given once it is free (ADR 0025). */
function occupiedIn(view: StoreContext["view"], pool: Pool, cidr: Cidr): bigint[] {
  const whole = fullInterval(cidr);
  return [...(view?.occupants?.() ?? [])]
    .filter(([address, occupant]) => familyOf(address) === cidr.family && isOfPool(occupant, pool))
    .map(([address]) => toNumber(address))
    .filter((n) => contains(whole, n));
}

/** What a block is granted by, read after it was made. */
interface Facts {
  readonly read: Reader;
  /**
   * As it is now: it may have been made smaller since the block was made. Undefined: it gives nothing any more. `unreadable`: a newer
   * version may have written it, and only that one knows what it gives.
   */
  readonly pool: Pool | "unreadable" | undefined;
}

/**
 * Grants a block that was made: reads the reservations in it, which are holes from here on as is what its pool does not give any more, and
 * compares and sets. Whoever comes upon a block that is not granted may go on with it, at any time. Undefined: it is gone, or had nothing
 * to give and was taken away again, or is left to somebody who can read its pool. `first` has read after the block was made; after a
 * conflict everything is read again.
 */
export async function finishGrant(
  { store }: StoreContext,
  made: Stored<"block">,
  first?: Facts,
): Promise<Stored<"block"> | undefined> {
  const change = { kind: "block", key: made.key, doing: "it was granted", seen: made } as const;
  let facts = first;
  return await retryOnConflict(store, change, async (seen) => {
    if (seen === undefined || seen.record.granted === true) return seen;
    facts ??= { read: await readerFor(store, seen.record), pool: await poolNow(store, seen.record.pool) };
    const { read, pool } = facts;
    facts = undefined;
    if (pool === "unreadable") return undefined;
    const granted = (await mayBeWithin(store, seen.record))
      ? await holed(seen.record, read, pool)
      : undefined;
    if (granted === undefined)
      return (await store.remove("block", seen)).kind === "removed" ? undefined : "conflict";
    const result = await store.replace("block", seen, granted);
    return result.kind === "replaced" ? result.stored : "conflict";
  });
}

/**
 * Makes an address of the block, which is divided, the node's: a block of its own. Undefined: another has it, or the block, as it is
 * now, does not allow it (ADR 0025).
 */
export async function grantSingle(
  context: StoreContext,
  pool: Pool,
  { within, address, node, nodeUID }: SingleRequest,
): Promise<Stored<"block"> | undefined> {
  const cidr = parseCidr(singleOf(address));
  if (cidr === undefined || openIn(pool, cidr).length === 0) return undefined;
  const record = { cidr: cidr.text, pool: pool.name, node, nodeUID, holes: [], within };
  const made = await created(context.store, record);
  if (made === undefined) return undefined;
  const granted = await finishGrant(context, made);
  return granted?.record.node === node ? granted : undefined;
}

/** An address, and for whom it is. */
interface SingleRequest {
  /** The CIDR of the block that it lies in. */
  readonly within: string;
  readonly address: Address;
  readonly node: string;
  readonly nodeUID: string;
}

/**
 * Whether the block around a single address allows it, to be asked after that was made: whoever deletes the block closes it first and
 * then looks for those within it, so that at least one sees the other.
 */
async function mayBeWithin(store: Store, { cidr, within, pool }: Block): Promise<boolean> {
  if (within === undefined) return true;
  const around = (await store.get("block", within))?.record;
  const address = parseAddress(cidr.split("/")[0] ?? "");
  return around?.pool === pool && address !== undefined && mayBeSingle(around, address);
}

/** The pool, if it has blocks to give as it is now. */
async function poolNow(store: Store, name: string): Promise<Facts["pool"]> {
  const stored = await store.get("pool", name);
  const pool = stored && parseStoredPool(stored.record);
  if (pool !== undefined && isRefusal(pool)) return "unreadable";
  return pool?.disabled === true ? undefined : pool;
}

/** Granted, without what is reserved in it; undefined: nothing is left, or not all of it where all is to be given. */
async function holed(block: Block, read: Reader, pool: Pool | undefined): Promise<Block | undefined> {
  if (pool === undefined) return undefined;
  const cidr = networkOfBlock(block.cidr);
  const whole = fullInterval(cidr);
  const holes = holesOf(block);
  for (const interval of closedIn(pool, cidr)) holes.addInterval(interval);
  if (block.use !== undefined)
    return holes.size > 0n || (await read(cidr, [whole])).length > 0
      ? undefined
      : { ...block, granted: true };
  for (const n of await read(cidr, without([whole], holes))) holes.add(n);
  if (without([whole], holes).length === 0) return undefined;
  return { ...block, holes: holesText(holes, cidr.family), granted: true };
}

/** Addresses that the block's owner may get, if none of them is reserved. */
function openCount(block: Block): number {
  const open = without([fullInterval(networkOfBlock(block.cidr))], holesOf(block));
  return Number(open.reduce((sum, interval) => sum + sizeOf(interval), 0n));
}
