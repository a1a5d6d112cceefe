// SPDX-License-Identifier: Apache-2.0
// What a block's record says of who has it, for whoever hands blocks out.

import { ownedIn } from "../cache/block-index.ts";
import type { Family } from "../ip/address.ts";
import { sizeOf } from "../ip/ip-range.ts";
import { type Block, isReturned, networkOfBlock, returnedOf } from "../model/block.ts";
import type { Holding } from "./block-plan.ts";

/** After this long an owner that has not answered does not do so soon: its agent looks every 10 s. */
export const SILENT_MS = 20_000;

export function isHeld(block: Block, family: Family): boolean {
  return block.granted === true && !isGivenBack(block) && networkOfBlock(block.cidr).family === family;
}

/** It goes whole. */
export function isCooling(block: Block, family: Family): boolean {
  return isGivenBack(block) && block.division === undefined && networkOfBlock(block.cidr).family === family;
}

/** What was given back is nobody's any more, before anybody has written that. */
function isGivenBack(block: Block): boolean {
  return block.releasedAt !== undefined || isReturned(block);
}

export function holdingOf(block: Block, now: number): Holding | "cooling" {
  if (isGivenBack(block)) return "cooling";
  const stays = staysWith(block, now);
  return { node: block.node, usable: usableIn(block), ...(stays && { stays }) };
}

/** Why it is not waited for. It comes all the same, where it was asked for, as soon as its owner does not use it. */
export function staysWith(block: Block, now: number): Holding["stays"] {
  if (usedOf(block) > 0) return "used";
  const { recalledAt = now } = block;
  return now - recalledAt >= SILENT_MS ? "silent" : undefined;
}

/** Addresses that sandboxes have, so far as its owner has said. */
export function usedOf({ status, node }: Block): number {
  return status?.node === node ? status.used : 0;
}

/** Addresses that its owner may give. */
export function usableIn(block: Block): number {
  const owned = ownedIn(block).intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);
  return Number(owned) - returnedOf(block).length;
}
