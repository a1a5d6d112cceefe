// SPDX-License-Identifier: Apache-2.0

import type { Context } from "../cache/context.ts";
import type { Reading } from "../cache/read-ahead.ts";
import type { Address } from "../ip/address.ts";
import { type Block, isHole, withHole } from "../model/block.ts";
import { blockAround, singleOf } from "../pool/blocks.ts";
import { rangeOf } from "../pool/pool.ts";
import { retryOnConflict } from "../store/retry-on-conflict.ts";
import { ensureUnmarked } from "./orphan-mark.ts";

type RecordContext = Pick<Context, "store" | "view">;

/**
 * The block whose owner has the address for itself; undefined: a reservation of it is good. Reads the store, and makes
 * the address a hole of a block that is not granted yet, which the grant then finds.
 *
 * To be asked after the reservation was made, or read again: the reservation is there before the block is looked for, and
 * a block is there before the reservations in it are, so that at least one side sees the other (ADR 0020). A hole may be a
 * block of its own, once its block is divided. What was good
 * stays so as long as the reservation stands.
 */
export async function blockAgainst(
  { store, view }: RecordContext,
  address: Address,
): Promise<Block | undefined> {
  for (const cidr of around(view, address)) {
    const owner = await ownerOf(store, cidr, address);
    if (owner !== undefined) return owner;
  }
  return undefined;
}

/**
 * The CIDRs of blocks that may have the address: of each pool whose ranges contain it, since two may overlap for a moment, and
 * of the block that is known to have it though its pool does not contain it any more. None: it is in no pool with blocks.
 */
export function around(view: RecordContext["view"], address: Address): readonly string[] {
  const cidrs = new Set<string>();
  for (const pool of view.pools()) {
    const cidr = rangeOf(pool, address) === undefined ? undefined : blockAround(pool, address);
    if (cidr !== undefined) cidrs.add(cidr.text);
  }
  const stray = view.strayBlock?.(address);
  if (stray !== undefined) cidrs.add(stray.within ?? stray.cidr);
  return [...cidrs];
}

async function ownerOf(
  store: RecordContext["store"],
  cidr: string,
  address: Address,
): Promise<Block | undefined> {
  const change = { kind: "block", key: cidr, doing: `${address} was made a hole of it` } as const;
  return await retryOnConflict(store, change, async (seen) => {
    if (seen === undefined) return undefined;
    if (isHole(seen.record, address))
      return seen.record.division === undefined
        ? undefined
        : await ownerOf(store, singleOf(address), address);
    if (seen.record.granted === true) return seen.record;
    const { kind } = await store.replace("block", seen, withHole(seen.record, address));
    return kind === "replaced" ? undefined : kind;
  });
}

/**
 * Makes sure that a claim may rely on its reservation: there, of its nonce, not cooling, without a mark, and not in a block
 * that a node has. False: it may not.
 */
export async function ensureReliable(
  context: RecordContext,
  address: Address,
  nonce: string,
): Promise<boolean> {
  if (!(await ensureUnmarked(context.store, address, nonce))) return false;
  return (await blockAgainst(context, address)) === undefined;
}

/** The same question for a decision that writes nothing. */
export async function isInGrantedBlock(
  { store, view }: Pick<Context, "view"> & { readonly store: Reading },
  address: Address,
): Promise<boolean> {
  for (const cidr of around(view, address)) {
    if (await isOwnedBy(store, cidr, address)) return true;
  }
  return false;
}

async function isOwnedBy(store: Reading, cidr: string, address: Address): Promise<boolean> {
  const isOwned = (block: Block) => block.granted === true && !isHole(block, address);
  const seen = (await store.get("block", cidr))?.record;
  if (seen?.division === undefined || !isHole(seen, address)) return seen !== undefined && isOwned(seen);
  const single = (await store.get("block", singleOf(address)))?.record;
  return single !== undefined && isOwned(single);
}
