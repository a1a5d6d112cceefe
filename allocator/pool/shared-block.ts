// SPDX-License-Identifier: Apache-2.0
import { type Refusal, refuse } from "../base/errors.ts";
import { bitsOf, type Cidr, type Family, fromNumber } from "../ip/address.ts";
import { fullInterval, type Interval, intersection, without } from "../ip/ip-range.ts";
import { BlockSpace, blockLength } from "./blocks.ts";
import type { Pool } from "./pool.ts";

/**
 * Why the pool cannot be cut beside the others, though they have no address in common: a block is named by its CIDR and of one
 * pool, so one that two pools of one size have parts of would be lost to the other. Blocks of different sizes have different
 * names, and each leaves out what is not its pool's. What the pool shared before its change it may go on sharing.
 */
export function findSharedBlock(pools: readonly Pool[], pool: Pool, before?: Pool): Refusal | undefined {
  const others = pools.filter(({ name }) => name !== pool.name);
  for (const family of pool.families) {
    for (const other of others) {
      const block = sharedBlock(pool, other, family, before);
      if (block === undefined) continue;
      // a pool that is there keeps its size
      const size = before === undefined ? freeLength(others, pool, family) : undefined;
      return shared(pool, other, block, [...beginElsewhere(pool, block), ...smallerBlocks(family, size)]);
    }
  }
  return undefined;
}

function sharedBlock(pool: Pool, other: Pool, family: Family, before: Pool | undefined): Cidr | undefined {
  const length = blockLength(pool, family);
  const old = before === undefined ? [] : sharedNumbers(before, other, family);
  const [first] = without(sharedNumbers(pool, other, family), old);
  return length === undefined || first === undefined
    ? undefined
    : new BlockSpace(pool, family, length).blockAt(first.first);
}

/** Numbers of blocks that both would have. */
function sharedNumbers(pool: Pool, other: Pool, family: Family): readonly Interval[] {
  const length = blockLength(pool, family);
  if (length === undefined || blockLength(other, family) !== length) return [];
  const own = new BlockSpace(pool, family, length).numbers;
  return without(own, without(own, new BlockSpace(other, family, length).numbers));
}

/** The largest blocks, smaller than these, that the pool would have for itself; it has no address in common with others. */
function freeLength(others: readonly Pool[], pool: Pool, family: Family): number {
  const field = family === "IPv4" ? "ipv4" : "ipv6";
  const bits = bitsOf(family);
  for (let length = (blockLength(pool, family) ?? bits) + 1; length < bits; length++) {
    const cut = { ...pool, spec: { ...pool.spec, blockSize: { ...pool.spec.blockSize, [field]: length } } };
    if (others.every((other) => sharedNumbers(cut, other, family).length === 0)) return length;
  }
  return bits;
}

function shared(pool: Pool, other: Pool, block: Cidr, advice: readonly string[]): Refusal {
  const next = advice.length === 0 ? `leave its addresses to pool ${other.name}` : advice.join(", or ");
  const words = `pools ${pool.name} and ${other.name} both have addresses of block ${block.text}, and a block is of one pool: ${other.name} or ${pool.name} could not give its own of them to pods that ask for nothing; ${next}`;
  return refuse("POOL_OVERLAPS", words, { pool: pool.name, other: other.name });
}

/** Behind the block, or before it, if the range goes on there. */
function beginElsewhere(pool: Pool, block: Cidr): readonly string[] {
  const whole = fullInterval(block);
  return [...pool.ranges.entries()].flatMap(([n, range]) => {
    if (range.family !== block.family || intersection(range, whole) === undefined) return [];
    if (range.last > whole.last)
      return [`begin spec.ranges[${n}] at ${fromNumber(whole.last + 1n, block.family)} (from)`];
    if (range.first < whole.first)
      return [`end spec.ranges[${n}] at ${fromNumber(whole.first - 1n, block.family)} (to)`];
    return [];
  });
}

function smallerBlocks(family: Family, length: number | undefined): readonly string[] {
  if (length === undefined) return [];
  return [`make it with spec.blockSize.${family === "IPv4" ? "ipv4" : "ipv6"}: ${length}`];
}
