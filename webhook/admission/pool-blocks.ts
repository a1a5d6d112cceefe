// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { listed } from "../../allocator/base/listed.ts";
import { invalidPool } from "../../allocator/base/validation.ts";
import { ownedIn } from "../../allocator/cache/block-index.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { type Family, fromNumber } from "../../allocator/ip/address.ts";
import type { IntervalSet } from "../../allocator/ip/interval-set.ts";
import { type Interval, without } from "../../allocator/ip/ip-range.ts";
import type { Block } from "../../allocator/model/block.ts";
import { blocksAhead, cutSpace } from "../../allocator/pool/blocks.ts";
import { givenIn, type Pool } from "../../allocator/pool/pool.ts";

/** Blocks that a message names. */
const NAMED = 5;

/** A block of another size overlaps those that are there, under another name (ADR 0020). How many nodes have ahead may change. */
export function changedBlockSize(asked: unknown, before: unknown): Refusal | undefined {
  if (isDeepStrictEqual(lengthsOf(asked), lengthsOf(before))) return undefined;
  return invalidPool(
    "spec.blockSize",
    "never changes, also from none: claims and nodes may have addresses of the pool as it was made; make another pool, in place of this one once that is deleted",
  );
}

/** Without what may change. */
export function lengthsOf(size: unknown): unknown {
  if (typeof size !== "object" || size === null) return size;
  const { ahead: _, ...lengths } = size as { readonly ahead?: unknown };
  return lengths;
}

/** As the size of blocks: nodes may have CIDRs of the pool as it was made. */
export function changedNodeCidrs(asked: unknown, before: unknown): Refusal | undefined {
  if (isDeepStrictEqual(asked, before)) return undefined;
  return invalidPool(
    "spec.nodeCIDRs",
    "never changes: nodes may have CIDRs of the pool as it was made; make another pool",
  );
}

/** A size that no block has an address to give with. A pool that no node has anything ahead of may be for fixed addresses alone by now. */
export function withoutBlocks(pool: Pool): Refusal | undefined {
  if (blocksAhead(pool) === 0) return undefined;
  const empty = pool.families.find((family) => {
    return cutSpace(pool, family)?.count === 0n;
  });
  if (empty === undefined) return undefined;
  if (pool.spec.nodeCIDRs !== undefined) {
    const why = `leaves no ${empty} CIDR: none lies whole in a range, with nothing excluded, reserved or a gateway; give a greater prefix length or a larger range`;
    return invalidPool("spec.nodeCIDRs.blockSize", why);
  }
  const words = `leaves no ${empty} block: every address is excluded, reserved or a gateway; leave some of them to nodes`;
  return invalidPool("spec.blockSize", words);
}

/** No node may find that what it has in a block is outside of the pool, or given to nobody. */
export function excludesOwnedBlocks(blocks: readonly Block[], pool: Pool): Refusal | undefined {
  const given = new Given(pool);
  const lost = blocks.filter((block) => block.pool === pool.name && given.lacks(block).length > 0);
  return lost.length === 0
    ? undefined
    : ownedByNodes(pool.name, lost, {
        why: "the change would leave out some of",
        next: "list the addresses in spec.reserved, and leave them out once the nodes have given the blocks back",
        field: "spec.ranges",
      });
}

/** Two pools that are over each other for a moment, or one that was shortened while nodes got blocks, leave such blocks. */
export function takesBlocksOfOthers(blocks: readonly Block[], pool: Pool): Refusal | undefined {
  const given = new Given(pool);
  for (const block of blocks) {
    const first = block.pool === pool.name ? undefined : given.has(block)[0];
    if (first === undefined) continue;
    const address = fromNumber(first.first, ownedIn(block).family);
    const words = `pool ${pool.name} contains ${address} of block ${block.cidr}, which is of pool ${block.pool} and a node's until that gives it back; exclude the block, or wait until it has gone (kubectl get ipblocks)`;
    return refuse("POOL_OVERLAPS", words, { pool: pool.name, other: block.pool });
  }
  return undefined;
}

/** All that a pool gives. */
class Given {
  readonly #pool: Pool;
  readonly #sets = new Map<Family, IntervalSet>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** What the block's owner has of it. */
  has(block: Block): readonly Interval[] {
    return without(ownedIn(block).intervals, this.lacks(block));
  }

  /** What the block's owner has outside of it. */
  lacks(block: Block): readonly Interval[] {
    const { family, intervals } = ownedIn(block);
    const set = this.#sets.get(family) ?? givenIn(this.#pool, family);
    this.#sets.set(family, set);
    return without(intervals, set);
  }
}

/** What nodes have of a pool that is to go. */
export function heldByNodes(view: RecordReader, pool: string, isDisabled: boolean): Refusal | undefined {
  const held = blocksIn(view, pool);
  return held.length === 0
    ? undefined
    : ownedByNodes(pool, held, {
        why: "nodes have",
        next: `${isDisabled ? "" : "set disabled: true and "}wait until the nodes have given them back${isDisabled ? ", which they do when pods that run with addresses of them have ended" : ""}`,
      });
}

function blocksIn(view: RecordReader, pool: string): readonly Block[] {
  const blocks = [...(view.blocksOf?.(pool) ?? [])].map(({ record }) => record);
  return blocks.filter(({ releasedAt }) => releasedAt === undefined);
}

function ownedByNodes(
  pool: string,
  blocks: readonly Block[],
  { why, next: other, field }: { readonly why: string; readonly next: string; readonly field?: string },
): Refusal {
  const some = listed(blocks, NAMED, ({ cidr, node }) => `${cidr} (${node})`);
  const next = blocks.some(({ use }) => use !== undefined)
    ? "they come back when those nodes are deleted"
    : other;
  const words = `pool ${pool} is in use: ${why} ${some}; ${next}`;
  const node = blocks[0]?.node ?? "";
  return refuse("POOL_IN_USE", words, { pool, node, ...(field !== undefined && { field }) });
}
