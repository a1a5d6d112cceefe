// SPDX-License-Identifier: Apache-2.0

import { ownedIn } from "../cache/block-index.ts";
import type { Cidr, Family } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { type Interval, intersection, merge } from "../ip/ip-range.ts";
import { type Block, networkOfBlock } from "../model/block.ts";
import type { BlockSpace } from "../pool/blocks.ts";
import { intervalsOf, type Pool } from "../pool/pool.ts";

/** The blocks of one pool and one family. */
interface PoolBlocks {
  readonly pool: string;
  readonly blocks: Block[];
  /** From the first address that they own to the last. */
  reach: Interval;
}

/**
 * The addresses in a pool's ranges that blocks of other pools own. Reviews refuse pools that overlap, but of two that are made or changed
 * at the same moment both may be admitted; and a block that was granted while its pool was made smaller stays with its node until that
 * gives it back.
 */
export class ForeignAddresses {
  readonly #ofPools = new Map<string, PoolBlocks>(); // pool/family -> its blocks

  constructor(blocks: Iterable<Block>) {
    for (const block of blocks) this.add(block);
  }

  add(block: Block): void {
    const { family, intervals } = ownedIn(block);
    const [first, last] = [intervals[0]?.first, intervals.at(-1)?.last];
    if (first === undefined || last === undefined) return;
    const key = `${block.pool}/${family}`;
    const known = this.#ofPools.get(key);
    if (known === undefined)
      this.#ofPools.set(key, { pool: block.pool, blocks: [block], reach: { first, last } });
    else {
      known.blocks.push(block);
      if (first < known.reach.first) known.reach = { ...known.reach, first };
      if (last > known.reach.last) known.reach = { ...known.reach, last };
    }
  }

  /** What blocks of other pools own in the pool's ranges. */
  in(pool: Pool, family: Family): readonly Interval[] {
    const ranges = merge(intervalsOf(pool, family));
    const near = this.#ofOtherPools(pool, family).filter(({ reach }) =>
      ranges.some((range) => intersection(range, reach) !== undefined),
    );
    const owned = near.flatMap(({ blocks }) => blocks.flatMap((block) => ownedIn(block).intervals));
    return merge(owned.flatMap((one) => ranges.flatMap((range) => intersection(range, one) ?? [])));
  }

  /** The blocks of this space that the pool cannot make: a block is named by its network, and another pool has one of that name. */
  *blocksOf(space: BlockSpace, pool: Pool): Generator<Cidr, void, undefined> {
    for (const { blocks } of this.#ofOtherPools(pool, space.family)) {
      for (const { cidr } of blocks) {
        const network = networkOfBlock(cidr);
        if (space.has(network)) yield network;
      }
    }
  }

  /** `known`, and what blocks of other pools own in the pool's ranges. */
  with(known: IntervalSet, pool: Pool, family: Family): IntervalSet {
    const foreign = this.in(pool, family);
    if (foreign.length === 0) return known;
    const all = new IntervalSet();
    for (const interval of [...known, ...foreign]) all.addInterval(interval);
    return all;
  }

  #ofOtherPools(pool: Pool, family: Family): readonly PoolBlocks[] {
    return [...this.#ofPools].flatMap(([key, one]) =>
      one.pool !== pool.name && key.endsWith(`/${family}`) ? [one] : [],
    );
  }
}
