// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { invalidPool } from "../../allocator/base/validation.ts";
import { ownedIn } from "../../allocator/cache/block-index.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import type { Family } from "../../allocator/ip/address.ts";
import type { IntervalSet } from "../../allocator/ip/interval-set.ts";
import { without } from "../../allocator/ip/ip-range.ts";
import type { Block } from "../../allocator/model/block.ts";
import { BlockSpace, blockLength } from "../../allocator/pool/blocks.ts";
import { givenIn, type Pool } from "../../allocator/pool/pool.ts";

/** Blocks that a message names. */
const NAMED = 5;

/** A block of another size overlaps those that are there, under another name (ADR 0020). */
export function changedBlockSize(asked: unknown, before: unknown): Refusal | undefined {
  if (isDeepStrictEqual(asked, before)) return undefined;
  return invalidPool(
    "spec.blockSize",
    "never changes: nodes may own blocks of the pool as it was made; make another pool",
  );
}

/** A size that no block has an address to give with. */
export function withoutBlocks(pool: Pool): Refusal | undefined {
  const empty = pool.families.find((family) => {
    const length = blockLength(pool, family);
    return length !== undefined && new BlockSpace(pool, family, length).count === 0n;
  });
  if (empty === undefined) return undefined;
  const words = `leaves no ${empty} block: every address is excluded, reserved or a gateway; leave some of them to nodes`;
  return invalidPool("spec.blockSize", words);
}

/** No node may find that what it has in a block is outside of the pool, or given to nobody. */
export function excludesOwnedBlocks(view: RecordReader, pool: Pool): Refusal | undefined {
  const given = new Map<Family, IntervalSet>(); // family -> what the changed pool gives
  const lost = blocksIn(view, pool.name).filter((block) => {
    const { family, intervals } = ownedIn(block);
    const set = given.get(family) ?? givenIn(pool, family);
    given.set(family, set);
    return without(intervals, set).length > 0;
  });
  return lost.length === 0 ? undefined : ownedByNodes(pool.name, lost, "the change would leave out some of");
}

/** What nodes have of a pool that is to go. */
export function heldByNodes(view: RecordReader, pool: string): Refusal | undefined {
  const held = blocksIn(view, pool);
  return held.length === 0 ? undefined : ownedByNodes(pool, held, "nodes have");
}

function blocksIn(view: RecordReader, pool: string): readonly Block[] {
  const blocks = [...(view.blocksOf?.(pool) ?? [])].map(({ record }) => record);
  return blocks.filter(({ releasedAt }) => releasedAt === undefined);
}

function ownedByNodes(pool: string, blocks: readonly Block[], why: string): Refusal {
  const some = blocks.slice(0, NAMED).map(({ cidr, node }) => `${cidr} (${node})`);
  const more = blocks.length > NAMED ? ` and ${blocks.length - NAMED} more` : "";
  const words = `pool ${pool} is in use: ${why} ${some.join(", ")}${more}; set disabled: true and wait until the nodes have given them back`;
  return refuse("POOL_IN_USE", words, { pool, node: blocks[0]?.node ?? "" });
}
