// SPDX-License-Identifier: Apache-2.0
// What nodes have of a pool that has no address left for a pod which asks for any.

import type { RecordReader } from "../cache/reader.ts";
import type { Family } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import type { Block } from "../model/block.ts";
import { blocksAhead } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";

/** Behind what else keeps its addresses, and before what else helps; both empty: nodes have none. */
interface BlockShare {
  readonly how: string;
  readonly next: string;
}

const NONE: BlockShare = { how: "", next: "" };
/** Which pool that is, not everybody is to know who asks for an address. */
const OF_OTHERS =
  "nodes have blocks of another pool in its ranges (kubectl get ippools.berth.dev,ipblocks says of which): disable one of the two, and delete it once nothing of it is in use; ";

export function shareOfBlocks(view: RecordReader, pools: readonly Pool[], family: Family): BlockShare {
  const owned = new IntervalSet();
  const blocks = new Map<string, Block>(); // CIDR -> block: two pools may both contain some of it
  for (const pool of pools) {
    for (const { block, intervals } of view.blocksOver?.(pool, family) ?? []) {
      blocks.set(block.cidr, block);
      for (const interval of intervals) owned.addInterval(interval);
    }
  }
  if (owned.size === 0n) return NONE;
  const used = [...blocks.values()].reduce((sum, block) => sum + usedOf(block), 0n);
  const unused = used > owned.size ? 0n : owned.size - used;
  const how = `, ${owned.size} ${isOrAre(owned.size)} in blocks of nodes, whose pods use ${owned.size - unused}`;
  const isOfOthers = [...blocks.values()].some((block) => !pools.some(({ name }) => name === block.pool));
  if (isOfOthers) return { how, next: OF_OTHERS };
  return { how, next: unused === 0n ? "" : emptyOnes(pools) };
}

/** What cools is used by nobody, whatever its agent said last. */
function usedOf({ status, releasedAt }: Block): bigint {
  return releasedAt === undefined ? BigInt(status?.used ?? 0) : 0n;
}

function emptyOnes(pools: readonly Pool[]): string {
  const back = pools.some((pool) => blocksAhead(pool) > 0)
    ? "set spec.blockSize.ahead to 0, with which nodes give empty blocks back within minutes"
    : "wait some minutes for nodes to give empty blocks back";
  return `${back}, or list addresses in spec.reserved, which are in no block, for pods that name theirs; `;
}

export function isOrAre(count: number | bigint): string {
  return count === 1 || count === 1n ? "is" : "are";
}
