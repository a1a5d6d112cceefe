// SPDX-License-Identifier: Apache-2.0

import type { RecordCache } from "../cache/cache.ts";
import type { Context } from "../cache/context.ts";
import { bitsOf, type Family } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { networkOfBlock } from "../model/block.ts";
import { type BlockSpace, blocksAhead } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import type { NodeNeed, PoolSituation } from "./block-plan.ts";
import type { BlockTimes } from "./block-times.ts";
import { ForeignAddresses } from "./foreign-addresses.ts";
import { isCooling, usableIn } from "./holdings.ts";
import { RecentGrants } from "./recent-grants.ts";
import type { UnprovenBlocks } from "./unproven-blocks.ts";

type Deps = Pick<Context, "clock"> & {
  readonly view: Pick<RecordCache, "block" | "blocks" | "blocksOf" | "unpickable">;
  readonly times: BlockTimes;
  readonly unproven: UnprovenBlocks;
};

/** What cools for longer than this is not waited for. */
const AWAITED_MS = 30_000;

/** The blocks that the cache shows, and those that were granted here, before it does. */
export class KnownBlocks {
  readonly #deps: Deps;
  #foreign = new ForeignAddresses([]);
  readonly #granted: RecentGrants;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#granted = new RecentGrants(deps.clock, (cidr) => deps.view.block(cidr) !== undefined);
  }

  forgetShown(): void {
    this.#granted.forgetShown();
  }

  /** What is known of all blocks, before any is granted. */
  lookAtAll(): void {
    const blocks = [...this.#deps.view.blocks()];
    this.#foreign = new ForeignAddresses(blocks.map(({ record }) => record));
    for (const { record } of this.#granted.own()) this.#foreign.add(record);
    this.#deps.unproven.see(blocks);
  }

  /** It was granted just now. */
  keep(block: Stored<"block">): void {
    this.#foreign.add(block.record);
    this.#granted.keep(block);
  }

  /** Each once, with those within others. */
  of(pool: string, family: Family): readonly Stored<"block">[] {
    const unseen = this.#granted.unshown().filter(({ record }) => record.pool === pool);
    const all = [...this.#deps.view.blocksOf(pool), ...unseen];
    return all.filter(({ key }) => networkOfBlock(key).family === family);
  }

  /** With times that are past. */
  past(stored: Stored<"block">): Stored<"block"> {
    return this.#deps.times.of(stored, this.#deps.clock.now());
  }

  /** Addresses of the pool that are reserved, in a block of whatever pool, or not to be given at all. */
  unpickable(pool: Pool, family: Family): IntervalSet {
    return this.#foreign.with(this.#deps.view.unpickable(pool, family), pool, family);
  }

  /** What there is to plan with, and the numbers of blocks that are not free. */
  situation(
    pool: Pool,
    space: BlockSpace,
    nodes: readonly NodeNeed[],
  ): { readonly situation: PoolSituation; readonly taken: IntervalSet } {
    const { family, length } = space;
    const blocks = this.of(pool.name, family);
    const taken = new IntervalSet();
    for (const { key } of blocks) taken.add(space.numberOf(networkOfBlock(key)));
    // what would be granted and have nothing to give is not there to be granted
    for (const interval of space.usedUp(this.#deps.view.unpickable(pool, family)))
      taken.addInterval(interval);
    for (const interval of this.#foreign.in(pool, family)) taken.addInterval(space.numbersOf(interval));
    for (const network of this.#foreign.blocksOf(space, pool)) taken.add(space.numberOf(network));
    const situation: PoolSituation = {
      total: space.countWithout(taken) + BigInt(blocks.length),
      size: 2 ** (bitsOf(family) - length),
      held: blocks.map((block) => this.#deps.unproven.holdingOf(this.past(block))),
      nodes,
      ahead: blocksAhead(pool),
      cooling: this.coolingIn(pool, family),
    };
    return { situation, taken };
  }

  /** Addresses of blocks that cool, go whole, and are waited for. */
  coolingIn({ name, cooldownMs }: Pool, family: Family): number {
    const now = this.#deps.clock.now();
    let sum = 0;
    for (const stored of this.#deps.view.blocksOf(name)) {
      const { record } = this.past(stored);
      const isAwaited = (record.releasedAt ?? now) + cooldownMs - now <= AWAITED_MS;
      if (isAwaited && isCooling(record, family)) sum += usableIn(record);
    }
    return sum;
  }
}
