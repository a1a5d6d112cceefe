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
  /** Milliseconds since 1970: another node has none, and its owner is asked to give it back as soon as nobody uses it. */
  readonly recalledAt?: number;
  /** Milliseconds since 1970: given back, cooling until its pool's cooldown is over. Nobody gives from it. */
  readonly releasedAt?: number;
  /** What the agent of its node says of it. It is written apart: a block is made without one, and a replace leaves it alone. */
  readonly status?: BlockStatus;
}

/** All of a block that an agent writes. */
export interface BlockStatus {
  /** Whose agent wrote it. */
  readonly node: string;
  /** How many of its addresses sandboxes had when that was last said: for people and for choosing, never a proof. */
  readonly used: number;
  /**
   * Milliseconds since 1970: the agent's word that no sandbox has an address of the block, and that none will get one. It is
   * about this incarnation of the block, and never taken back.
   */
  readonly returnedAt?: number;
}

/** The owner's word that it uses the block no more. */
export function isReturned({ node, status }: Pick<Block, "node" | "status">): boolean {
  return status?.returnedAt !== undefined && status.node === node;
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
