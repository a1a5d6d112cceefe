// SPDX-License-Identifier: Apache-2.0

import {
  type Address,
  bitsOf,
  type Cidr,
  type Family,
  familyOf,
  formatCidr,
  toNumber,
} from "../ip/address.ts";
import { pickFree, startOffset } from "../ip/free-address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import {
  contains,
  fullInterval,
  type Interval,
  intersection,
  merge,
  sizeOf,
  without,
} from "../ip/ip-range.ts";
import { type AddressSpace, intervalsOf, unavailableByDefault } from "./address-space.ts";
import type { PoolSpec } from "./pool-spec.ts";

/** A block lists what it does not give, and is read address by address when it is granted. */
export const MOST_BLOCK_BITS = 12;

/** The prefix length of the pool's blocks, for pods; undefined: the pool has no blocks of the family. */
export function blockLength(pool: { readonly spec: PoolSpec }, family: Family): number | undefined {
  if (pool.spec.nodeCIDRs !== undefined) return undefined;
  const length = family === "IPv4" ? pool.spec.blockSize?.ipv4 : pool.spec.blockSize?.ipv6;
  return length === undefined || bitsOf(family) - length > MOST_BLOCK_BITS ? undefined : length;
}

/** A node has so many blocks more than its pods need, unless its pool says another number: the next one is there before the last one is full. */
const BLOCKS_AHEAD = 2;

export function blocksAhead(pool: { readonly spec: PoolSpec } | undefined): number {
  return pool?.spec.blockSize?.ahead ?? BLOCKS_AHEAD;
}

/** The prefix length of the CIDRs that the pool has for nodes; undefined: it has none of the family. */
export function nodeCidrLength(pool: { readonly spec: PoolSpec }, family: Family): number | undefined {
  const size = pool.spec.nodeCIDRs?.blockSize;
  return family === "IPv4" ? size?.ipv4 : size?.ipv6;
}

/** The prefix length of whatever the pool is cut into; a pool for CIDRs of nodes has no blocks for pods. */
export function cutLength(pool: { readonly spec: PoolSpec }, family: Family): number | undefined {
  return pool.spec.nodeCIDRs === undefined ? blockLength(pool, family) : nodeCidrLength(pool, family);
}

/** All that a pool of this kind has to give to nodes; undefined: nothing of the family. */
export function cutSpace(pool: Pool, family: Family): BlockSpace | undefined {
  const length = cutLength(pool, family);
  if (length === undefined) return undefined;
  return pool.spec.nodeCIDRs === undefined
    ? new BlockSpace(pool, family, length)
    : BlockSpace.ofWhole(pool, family, length);
}

/** The block of the pool that the address lies in, whether anybody has it or not; undefined: the pool has none. */
export function blockAround(pool: { readonly spec: PoolSpec }, address: Address): Cidr | undefined {
  const family = familyOf(address);
  const length = cutLength(pool, family);
  return length === undefined
    ? undefined
    : blockOf(family, length, toNumber(address) >> hostBits(family, length));
}

/** The block that is this address alone. */
export function singleOf(address: Address): string {
  const family = familyOf(address);
  return blockOf(family, bitsOf(family), toNumber(address)).text;
}

/** The addresses of the block that its owner may give: in a range, and neither excluded, a gateway nor reserved. */
export function openIn(space: AddressSpace, block: Cidr): readonly Interval[] {
  const whole = fullInterval(block);
  const inside = intervalsOf(space, block.family).flatMap((range) => intersection(range, whole) ?? []);
  return without(merge(inside), unavailableByDefault(space, block.family));
}

/** The addresses of the block that its owner may not give, as a block's record lists them. */
export function closedIn(space: AddressSpace, block: Cidr): readonly Interval[] {
  const open = new IntervalSet();
  for (const interval of openIn(space, block)) open.addInterval(interval);
  return without([fullInterval(block)], open);
}

type Pool = AddressSpace & { readonly spec: PoolSpec };

/** The blocks of one family of a pool: every aligned piece of it that has an address to give. */
export class BlockSpace {
  readonly family: Family;
  readonly length: number;
  readonly #open: readonly Interval[]; // addresses that may be given
  readonly #numbers: readonly Interval[]; // numbers of blocks: an address without its host bits

  constructor(space: AddressSpace, family: Family, length: number, only: "some" | "whole" = "some") {
    this.family = family;
    this.length = length;
    this.#open = without(merge(intervalsOf(space, family)), unavailableByDefault(space, family));
    this.#numbers = only === "some" ? this.#eachNumberOf(this.#open) : this.#wholeIn(this.#open);
  }

  /** Every aligned piece of which the pool keeps nothing back: a node's CIDR is given whole or not at all. */
  static ofWhole(space: AddressSpace, family: Family, length: number): BlockSpace {
    return new BlockSpace(space, family, length, "whole");
  }

  /** Whether it is one of these blocks, given or not. */
  has(block: Cidr): boolean {
    if (block.family !== this.family || block.prefixLength !== this.length) return false;
    const n = this.numberOf(block);
    return this.#numbers.some((interval) => contains(interval, n));
  }

  /** The numbers of all blocks that share an address with the interval, of this space or not. */
  numbersOf({ first, last }: Interval): Interval {
    const bits = hostBits(this.family, this.length);
    return { first: first >> bits, last: last >> bits };
  }

  /** The numbers of all blocks that share an address with the network, of this space or not. */
  numbersIn(network: Cidr): Interval {
    return this.numbersOf(fullInterval(network));
  }

  /** How many blocks there are whose number is not taken. */
  countWithout(taken: Iterable<Interval>): bigint {
    return without(this.#numbers, taken).reduce((sum, interval) => sum + sizeOf(interval), 0n);
  }

  /** The block with the number, of this space or not. */
  blockAt(n: bigint): Cidr {
    return blockOf(this.family, this.length, n);
  }

  /** How many blocks there are. */
  get count(): bigint {
    return this.#numbers.reduce((sum, interval) => sum + sizeOf(interval), 0n);
  }

  /** The numbers of all blocks, ascending. */
  get numbers(): readonly Interval[] {
    return this.#numbers;
  }

  /** The number of a block of this size, for `taken`. */
  numberOf(block: Cidr): bigint {
    return block.base >> hostBits(this.family, this.length);
  }

  /** Numbers of blocks that have nothing to give, each of their addresses being among `used`. */
  usedUp(used: Iterable<Interval>): readonly Interval[] {
    const left = new IntervalSet();
    for (const interval of this.#eachNumberOf(without(this.#open, used))) left.addInterval(interval);
    return without(this.#numbers, left);
  }

  #eachNumberOf(addresses: readonly Interval[]): readonly Interval[] {
    return merge(addresses.map((interval) => this.numbersOf(interval)));
  }

  #wholeIn(addresses: readonly Interval[]): readonly Interval[] {
    const bits = hostBits(this.family, this.length);
    const least = (1n << bits) - 1n;
    return addresses.flatMap(({ first, last }) => {
      const [from, to] = [(first + least) >> bits, ((last + 1n) >> bits) - 1n];
      return from > to ? [] : [{ first: from, last: to }];
    });
  }

  /**
   * Every block whose number is not taken, once and lazily. Nodes begin at places of their own, the same each time, so that
   * two which look at the same moment rarely want the same one, and a node's blocks lie beside each other.
   */
  *free(taken: IntervalSet, node: string): Generator<Cidr, void, undefined> {
    for (const n of pickFree(this.#numbers, taken, startOffset(node, this.#numbers))) {
      yield blockOf(this.family, this.length, n);
    }
  }
}

function blockOf(family: Family, prefixLength: number, n: bigint): Cidr {
  const network = { family, base: n << hostBits(family, prefixLength), prefixLength };
  return { ...network, hostBits: false, text: formatCidr(network) };
}

/** Of an address of the family, behind a prefix of that length. */
export function hostBits(family: Family, length: number): bigint {
  return BigInt(bitsOf(family) - length);
}
