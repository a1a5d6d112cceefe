// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../base/errors.ts";
import { type Address, type Cidr, type Family, familyOf, parseCidr, toNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { contains, fullInterval, type Interval, networksOf } from "../ip/ip-range.ts";

/**
 * The record that a node owns a piece of a pool, for pods that need no fixed address. It is named by the CIDR: creating it
 * is the atomic act, and the blocks of one pool have one size (ADR 0020).
 */
export interface Block {
  /** Canonical, aligned to the pool's block size; a single address where it is `within` a block of that size. */
  readonly cidr: string;
  readonly pool: string;
  readonly node: string;
  /** Of the Node object that it was made for. */
  readonly nodeUID: string;
  /** The node has all of it, and no agent gives pods an address of it (ADR 0029); absent: it is for pods that ask for nothing. */
  readonly use?: BlockUse;
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
  /** Single addresses of it may be blocks of their own, which other nodes have; absent: there are none, and never were. */
  readonly division?: Division;
  /** A single address: the block that it lies in, which stays as long as this one does. */
  readonly within?: string;
  /** So many addresses its owner is asked to give back one by one, of this incarnation, with those that it has given back. */
  readonly recalledAddresses?: number;
  /** Where the object of its node named it when it was recorded, or is to name it. Agents of Cilium's may serve pods from the first. */
  readonly place?: number;
  /** What the agent of its node says of it. It is written apart: a block is made without one, and a replace leaves it alone. */
  readonly status?: BlockStatus;
}

/** The CIDR that the block is named by. */
export function networkOfBlock(cidr: string): Cidr {
  const network = parseCidr(cidr);
  if (network === undefined) throw new BerthError("INTERNAL", `${cidr} is no block`);
  return network;
}

/** Who has a block that is a node's CIDR: `PodCIDR`, the Node object names it; `Cilium`, its objects do. One that is not known: somebody. */
export type BlockUse = "PodCIDR" | "Cilium" | "unknown";

/**
 * Which addresses of a block may be blocks of their own. `returned`: those that its owner has given back, and holes that nobody has
 * reserved; `all`: every one, as its owner has none any more and it has cooled; `closed`: none, it is about to go.
 */
export type Division = "returned" | "all" | "closed";

/** So many addresses of a block are given back one by one at most: the list only grows. */
export const MOST_RETURNED = 256;

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
  /**
   * Addresses that the agent has given back one by one: no sandbox of its node has one of them by this block, and none will get one.
   * About this incarnation of the block; none is ever taken out.
   */
  readonly returnedAddresses?: readonly Address[];
}

/** The owner's word that it uses the block no more. */
export function isReturned({ node, status }: Pick<Block, "node" | "status">): boolean {
  return status?.returnedAt !== undefined && status.node === node;
}

/** What its owner has given back one by one. */
export function returnedOf({ node, status }: Pick<Block, "node" | "status">): readonly Address[] {
  return status?.node === node ? (status.returnedAddresses ?? []) : [];
}

/** Whether a block of this address alone, within the block, may be given to a node, if nobody has reserved the address. */
export function mayBeSingle(block: Block, address: Address): boolean {
  const network = parseCidr(block.cidr);
  if (network?.family !== familyOf(address) || !contains(fullInterval(network), toNumber(address)))
    return false;
  if (block.granted !== true || block.division === undefined || block.division === "closed") return false;
  return block.division === "all" || isHole(block, address) || returnedOf(block).includes(address);
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
