// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, familyOf, parseCidr, toNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { fullInterval, type Interval, networksOf } from "../ip/ip-range.ts";

/**
 * The record that a node owns a piece of a pool, for pods that need no fixed address. It is named by the CIDR: creating it
 * is the atomic act, and the blocks of one pool have one size (ADR 0020).
 */
export interface Block {
  /** Canonical, aligned to the pool's block size. */
  readonly cidr: string;
  readonly pool: string;
  readonly node: string;
  /** Of the Node object that it was made for. */
  readonly nodeUID: string;
  /**
   * Networks of it that its owner does not give: what the pool keeps back, and what was reserved one by one when the block
   * was granted. As long as it is granted, no address is added.
   */
  readonly holes: readonly string[];
  /** The reservations in it were read after it was made: from here on its owner may give what is no hole. */
  readonly granted?: boolean;
  /** Milliseconds since 1970: given back, cooling until its pool's cooldown is over. Nobody gives from it. */
  readonly releasedAt?: number;
}

/** The addresses of the block that its owner does not give. */
export function holesOf({ holes }: Pick<Block, "holes">): IntervalSet {
  const set = new IntervalSet();
  for (const text of holes) {
    const network = parseCidr(text);
    if (network !== undefined) set.addInterval(fullInterval(network));
  }
  return set;
}

/** Holes as a record lists them. */
export function holesText(holes: Iterable<Interval>, family: Family): readonly string[] {
  return [...holes].flatMap((interval) => networksOf(interval, family).map(({ text }) => text));
}

export function isHole(block: Pick<Block, "holes">, address: Address): boolean {
  return holesOf(block).has(toNumber(address));
}

/** The block with one hole more: only while it is not granted. */
export function withHole(block: Block, address: Address): Block {
  const holes = holesOf(block);
  holes.add(toNumber(address));
  return { ...block, holes: holesText(holes, familyOf(address)) };
}
