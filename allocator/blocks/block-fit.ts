// SPDX-License-Identifier: Apache-2.0
import { ownedIn } from "../cache/block-index.ts";
import { without } from "../ip/ip-range.ts";
import { type Block, networkOfBlock } from "../model/block.ts";
import { openIn } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";

/** Whether pools give all that owners of their blocks have: one that was made smaller while a block of it was granted does not. */
export class BlockFit {
  readonly #known = new WeakMap<Block, Pool>(); // a block as it was seen -> the pool, as it was then, that it is in

  isIn(pool: Pool, block: Block): boolean {
    if (this.#known.get(block) === pool) return true;
    const isIn = without(ownedIn(block).intervals, openIn(pool, networkOfBlock(block.cidr))).length === 0;
    if (isIn) this.#known.set(block, pool);
    return isIn;
  }
}
