// SPDX-License-Identifier: Apache-2.0
import type { NodeNeed } from "./block-plan.ts";

/** A block of several addresses, as far as single ones of it may be other nodes'. */
export interface Divisible {
  readonly cidr: string;
  /** Its owner, who may be asked for addresses; undefined: it has none any more. */
  readonly node: string | undefined;
  /** How many may be a block of their own now. */
  readonly ready: number;
  /** How many its owner has not given back, and does not use, so far as it said. */
  readonly unused: number;
  /** How many it was asked for and has not given back. */
  readonly recalled: number;
  /** It was asked some while ago, and nothing came. */
  readonly overdue: boolean;
}

export interface SingleSituation {
  readonly short: readonly { readonly need: NodeNeed; readonly missing: number }[];
  /** Addresses of whole blocks that are about to come back, which these nodes get. */
  readonly coming: number;
  readonly blocks: readonly Divisible[];
  /** How many addresses a node has beyond what its pods need. */
  spareOf(node: string): number;
}

/** One address of this block. */
interface SingleGrant {
  readonly need: NodeNeed;
  readonly cidr: string;
}

/** The owner of the block is asked for so many more addresses of it. */
interface SingleRequest {
  readonly cidr: string;
  readonly addresses: number;
}

/** Where pods lack addresses and no whole block is free: who gets a single address of which block. Same situation in, same plan out. */
export function planGrants({
  short,
  blocks,
}: Pick<SingleSituation, "short" | "blocks">): readonly SingleGrant[] {
  const wanting = short.flatMap(({ need, missing }) => Array.from({ length: missing }, () => need));
  const ready = blocks.flatMap(({ cidr, ready: count }) => Array.from({ length: count }, () => cidr));
  return wanting.flatMap((need, i) => {
    const cidr = ready[i];
    return cidr === undefined ? [] : [{ need, cidr }];
  });
}

/**
 * Whose owner is asked for how many addresses, where those that are ready are given and do not do, nor what comes back whole. Nobody is
 * asked for what its pods need, and those who were asked and gave nothing come after all others. Same situation in, same plan out.
 */
export function planRequests({ short, coming, blocks, spareOf }: SingleSituation): readonly SingleRequest[] {
  const lacking = short.reduce((sum, { missing }) => sum + missing, 0) - coming;
  return asksFor(lacking, blocks, spareOf);
}

function asksFor(
  lacking: number,
  blocks: readonly Divisible[],
  spareOf: SingleSituation["spareOf"],
): readonly SingleRequest[] {
  const spare = new Map<string, number>(); // node -> what is left of its addresses to spare
  const take = (node: string, most: number) => {
    const left = spare.get(node) ?? Math.max(0, spareOf(node));
    const taken = Math.min(left, most);
    spare.set(node, left - taken);
    return taken;
  };
  let missing = lacking;
  const owned = blocks.flatMap((block) => (block.node === undefined ? [] : [{ ...block, node: block.node }]));
  const inTime = owned.filter(({ overdue }) => !overdue);
  // what was asked for and can be given comes
  for (const { node, recalled, unused } of inTime) missing -= take(node, Math.min(recalled, unused));
  const late = new Set(owned.flatMap(({ node, overdue }) => (overdue ? [node] : [])));
  const order = inTime.toSorted(
    (a, b) => Number(late.has(a.node)) - Number(late.has(b.node)) || b.unused - a.unused,
  );
  const asks: { cidr: string; addresses: number }[] = [];
  for (const { cidr, node, unused, recalled } of order) {
    const addresses = missing <= 0 ? 0 : take(node, Math.min(missing, Math.max(0, unused - recalled)));
    if (addresses === 0) continue;
    asks.push({ cidr, addresses });
    missing -= addresses;
  }
  return asks;
}
