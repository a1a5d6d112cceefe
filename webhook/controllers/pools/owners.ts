// SPDX-License-Identifier: Apache-2.0
import { ownedIn } from "../../../allocator/cache/block-index.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { sizeOf } from "../../../allocator/ip/ip-range.ts";
import { isReturned, returnedOf } from "../../../allocator/model/block.ts";

/** What a node has of one family of a pool. */
interface OwnedFigures {
  readonly blocks: number;
  /** Those that it may give. */
  readonly addresses: number;
  /** Of these, what its sandboxes have, as its agent said last. */
  readonly used: number;
}

export interface Owner {
  readonly node: string;
  readonly ipv4?: OwnedFigures;
  readonly ipv6?: OwnedFigures;
}

/** Nodes that a status names: every agent hears of each change of it. */
const NAMED = 16;

/** Who has blocks of the pool: those that have most, first; and what all of them use. */
export function ownersOf(
  cache: Pick<RecordCache, "blocksOf">,
  pool: string,
): { readonly owners: readonly Owner[]; readonly used: number } {
  const owners = new Map<string, Owner>(); // node -> what it has
  for (const { record } of cache.blocksOf(pool)) {
    const { node, granted, releasedAt, status } = record;
    if (granted !== true || releasedAt !== undefined || isReturned(record)) continue;
    const { family, intervals } = ownedIn(record);
    const key = family === "IPv4" ? "ipv4" : "ipv6";
    const owner = owners.get(node) ?? { node };
    const { blocks, addresses, used } = owner[key] ?? { blocks: 0, addresses: 0, used: 0 };
    const owned = Number(intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n));
    const usable = owned - returnedOf(record).length;
    const more = { blocks: blocks + 1, addresses: addresses + usable, used: used + (status?.used ?? 0) };
    owners.set(node, { ...owner, [key]: more });
  }
  const all = [...owners.values()].sort((a, b) => blocksOf(b) - blocksOf(a) || (a.node < b.node ? -1 : 1));
  const used = all.reduce((sum, { ipv4, ipv6 }) => sum + (ipv4?.used ?? 0) + (ipv6?.used ?? 0), 0);
  return { owners: all.slice(0, NAMED), used };
}

function blocksOf({ ipv4, ipv6 }: Owner): number {
  return (ipv4?.blocks ?? 0) + (ipv6?.blocks ?? 0);
}
