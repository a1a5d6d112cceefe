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
import { fullInterval, type Interval, intersection, merge, sizeOf, without } from "../ip/ip-range.ts";
import { type AddressSpace, intervalsOf, unavailableByDefault } from "./address-space.ts";
import type { PoolSpec } from "./pool-spec.ts";

/** A block lists what it does not give, and is read address by address when it is granted. */
export const MOST_BLOCK_BITS = 12;

/** The prefix length of the pool's blocks; undefined: the pool has no blocks of the family. */
export function blockLength(pool: { readonly spec: PoolSpec }, family: Family): number | undefined {
  const length = family === "IPv4" ? pool.spec.blockSize?.ipv4 : pool.spec.blockSize?.ipv6;
  return length === undefined || bitsOf(family) - length > MOST_BLOCK_BITS ? undefined : length;
}

/** The block of the pool that the address lies in, whether anybody has it or not; undefined: the pool has none. */
export function blockAround(pool: { readonly spec: PoolSpec }, address: Address): Cidr | undefined {
  const family = familyOf(address);
  const length = blockLength(pool, family);
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

/** The blocks of one family of a pool: every aligned piece of it that has an address to give. */
export class BlockSpace {
  readonly family: Family;
  readonly length: number;
  readonly #open: readonly Interval[]; // addresses that may be given
  readonly #numbers: readonly Interval[]; // numbers of blocks: an address without its host bits

  constructor(space: AddressSpace, family: Family, length: number) {
    this.family = family;
    this.length = length;
    this.#open = without(merge(intervalsOf(space, family)), unavailableByDefault(space, family));
    this.#numbers = this.#numbersOf(this.#open);
  }

  /** How many blocks there are. */
  get count(): bigint {
    return this.#numbers.reduce((sum, interval) => sum + sizeOf(interval), 0n);
  }

  /** The number of a block of this size, for `taken`. */
  numberOf(block: Cidr): bigint {
    return block.base >> hostBits(this.family, this.length);
  }

  /** Numbers of blocks that have nothing to give, each of their addresses being among `used`. */
  usedUp(used: Iterable<Interval>): readonly Interval[] {
    const left = new IntervalSet();
    for (const interval of this.#numbersOf(without(this.#open, used))) left.addInterval(interval);
    return without(this.#numbers, left);
  }

  #numbersOf(addresses: readonly Interval[]): readonly Interval[] {
    const bits = hostBits(this.family, this.length);
    return merge(addresses.map(({ first, last }) => ({ first: first >> bits, last: last >> bits })));
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

function hostBits(family: Family, length: number): bigint {
  return BigInt(bitsOf(family) - length);
}
