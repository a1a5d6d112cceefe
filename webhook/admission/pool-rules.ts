// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal, refuse, refuseJoined } from "../../allocator/base/errors.ts";
import { listed } from "../../allocator/base/listed.ts";
import { holderOf, poolsContaining, type RecordReader } from "../../allocator/cache/reader.ts";
import { allowedTtlMs } from "../../allocator/lifecycle/retention-limits.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Block } from "../../allocator/model/block.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import { findOverlap } from "../../allocator/pool/overlap.ts";
import {
  classify,
  type Pool,
  type PoolRecord,
  parsePool,
  parseStoredPool,
} from "../../allocator/pool/pool.ts";
import { findSharedBlock } from "../../allocator/pool/shared-block.ts";
import { givesSpecialAddresses } from "../../allocator/pool/special-addresses.ts";
import {
  excludesOwnedBlocks,
  heldByNodes,
  lengthsOf,
  takesBlocksOfOthers,
  withoutBlocks,
} from "./pool-blocks.ts";

/** What a pool may have been before, as it was written. */
export type SpecBefore = Readonly<Record<string, unknown>>;

/** What a pool stands beside. */
interface Surroundings {
  /** Of reservations and claims; it may be behind. */
  readonly view: RecordReader;
  /** Every pool, this one as it was among them. */
  readonly pools: readonly Pool[];
  /** Every block that nodes have. */
  readonly blocks: readonly Block[];
}

export function poolRecordOf(object: KubeObject): PoolRecord {
  // `parsePool` reads every field of it.
  return { name: object.metadata.name, spec: object.spec.value as unknown as PoolRecord["spec"] };
}

/** Why the pool cannot stand beside the others and what is reserved in it. `before`: as it was, if it was there. */
export function judgePool(
  around: Surroundings,
  object: KubeObject,
  before: SpecBefore | undefined,
): Refusal | undefined {
  const pool = parsePool(poolRecordOf(object));
  if (isRefusal(pool)) return pool;
  return asksForRoom(pool, before) ? judgeRoom(around, pool, before) : undefined;
}

/**
 * Whether it takes addresses, or lets go of some. Everything else may change whatever stands beside it by now: a pool that overlaps
 * another one, or that nodes have blocks outside of, must be such as can be disabled.
 */
export function asksForRoom({ spec }: Pool, before: SpecBefore | undefined): boolean {
  if (before === undefined || (before["disabled"] === true && spec.disabled !== true)) return true;
  const room = ({
    ranges,
    reserved = [],
    nodeCIDRs,
    blockSize,
  }: Partial<Record<keyof Pool["spec"], unknown>>) => [ranges, reserved, nodeCIDRs, lengthsOf(blockSize)];
  return !isDeepStrictEqual(room(spec), room(before));
}

export function judgeRoom(
  { view, pools, blocks }: Surroundings,
  pool: Pool,
  before: SpecBefore | undefined,
): Refusal | undefined {
  return (
    newSpecialAddresses(pools, pool) ??
    collision(pools, pool, before) ??
    withoutBlocks(pool) ??
    excludesReservations(view, pool) ??
    excludesOwnedBlocks(blocks, pool) ??
    takesBlocksOfOthers(blocks, pool)
  );
}

/** Of those that stand beside it. */
export function collision(
  pools: readonly Pool[],
  pool: Pool,
  before: SpecBefore | undefined,
): Refusal | undefined {
  const stood = before && parseStoredPool({ name: pool.name, spec: before });
  const old = stood === undefined || isRefusal(stood) ? undefined : stood;
  return findOverlap(pools, pool) ?? findSharedBlock(pools, pool, old);
}

/** A pool that has them from before may keep them, so that it can still be disabled. */
function newSpecialAddresses(pools: readonly Pool[], pool: Pool): Refusal | undefined {
  const stored = pools.find(({ name }) => name === pool.name);
  if (stored !== undefined && givesSpecialAddresses(stored) !== undefined) return undefined;
  return givesSpecialAddresses(pool);
}

/** No reservation that a claim relies on may find itself outside, or on an address that is not given out. */
function excludesReservations(view: RecordReader, pool: Pool): Refusal | undefined {
  const lost: Reservation[] = [];
  for (const { record } of view.reservations(pool.name)) {
    if (record.pool !== pool.name || record.releasedAt !== undefined) continue;
    const kind = classify(pool, record.address);
    if (kind !== "open" && kind !== "reserved") lost.push(record);
  }
  return lost.length === 0 ? undefined : inUse(view, pool.name, { reservations: lost, ...LEFT_OUT });
}

export function judgeRemoval(view: RecordReader, object: KubeObject): Refusal | undefined {
  const { name } = object.metadata;
  const held: Reservation[] = [];
  for (const { record } of view.reservations(name)) {
    if (record.pool === name && record.releasedAt === undefined) held.push(record);
  }
  const isDisabled = object.spec.value["disabled"] === true;
  const byNodes = heldByNodes(view, name, isDisabled);
  if (held.length === 0) return byNodes;
  const byClaims = inUse(view, name, { reservations: held, ...(isDisabled ? RUN_OUT : STILL_HELD) });
  if (byNodes === undefined) return byClaims;
  const joined = (all: readonly Refusal[]) => all.map(({ message }) => message).join("; ");
  return refuseJoined("POOL_IN_USE", { refusals: [byClaims, byNodes], joined }, { pool: name });
}

interface InUse {
  readonly reservations: readonly Reservation[];
  readonly why: string;
  readonly next: string;
  /** Absent: the pool is to go. */
  readonly field?: string;
}

/** To disable a pool would close all of it, and end nothing of what is in use. */
const LEFT_OUT = {
  why: "the change would leave out",
  next: "release them first, or list them in spec.reserved, so that only who names one gets it, and leave them out once they are free",
  field: "spec.ranges",
};
const STILL_HELD = { why: "it still holds", next: "release them first, or set disabled: true and wait" };
/** Of a pool that is disabled, which ends nothing by itself. */
const RUN_OUT = {
  ...STILL_HELD,
  next: "it is disabled, and pods that have addresses of it keep them: end those pods and release what is kept without one, or wait",
};

function inUse(view: RecordReader, pool: string, { reservations, why, next, field }: InUse): Refusal {
  const some = listed(reservations, 5, (one) => `${one.address} (${holder(view, one)})`);
  return refuse("POOL_IN_USE", `pool ${pool} is in use: ${why} ${some}; ${next}`, {
    pool,
    ...(field !== undefined && { field }),
  });
}

/** Whose it is, and until when, where that is known: the others stay as long as their owners. */
function holder(view: RecordReader, reservation: Reservation): string {
  const { key, claim } = holderOf(view, reservation);
  if (claim?.retained === undefined) return key;
  const ttlMs = allowedTtlMs(claim.retention, poolsContaining(view, claim.addresses));
  if (ttlMs === null) return `${key}, kept until it is released`;
  return `${key}, kept until ${new Date(claim.retained.since + ttlMs).toISOString().replace(/\.\d{3}Z$/, "Z")}`;
}
