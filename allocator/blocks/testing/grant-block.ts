// SPDX-License-Identifier: Apache-2.0
import type { IntervalSet } from "../../ip/interval-set.ts";
import type { Pool } from "../../pool/pool.ts";
import type { Stored } from "../../store/store.ts";
import { type BlockRequest, finishGrant, makeBlock } from "../grant.ts";

/**
 * Makes a block of the pool the node's, as `grantBlocks` does for many: the first that nobody has, none of `known`
 * (numbers of blocks, which is extended by what turns out to be taken). Undefined: none is free, or the pool has no
 * blocks of the family.
 */
export async function grantBlock(
  context: Parameters<typeof makeBlock>[0] & Parameters<typeof finishGrant>[0],
  pool: Pool,
  request: BlockRequest,
  known: IntervalSet,
): Promise<Stored<"block"> | undefined> {
  for (;;) {
    const made = await makeBlock(context, pool, request, known);
    if (made === undefined) return undefined;
    const granted = await finishGrant(context, made);
    if (granted?.record.node === request.node) return granted;
  }
}
