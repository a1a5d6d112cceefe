// SPDX-License-Identifier: Apache-2.0
import {
  type Address,
  bitsOf,
  type Family,
  familyOf,
  fromNumber,
  toNumber,
} from "../../../allocator/ip/address.ts";
import { MOST_BLOCK_BITS } from "../../../allocator/pool/blocks.ts";
import type { AddressUse } from "../journal/address-set.ts";
import type { OwnedBlock } from "../journal/owned-blocks.ts";
import { BlockSpace } from "./block-space.ts";
import { type CooldownOf, FreedAddresses } from "./freed-addresses.ts";

/** Beyond what any block has. */
const RECALLED_RANK = 2 ** (MOST_BLOCK_BITS + 1);

/** Why the node's blocks of a pool give no address of the family. */
export interface BlockShortage {
  readonly kind: "shortage";
  readonly family: Family;
  /** Blocks that are given from, and how many addresses of them are whose. */
  readonly blocks: readonly string[];
  readonly used: number;
  readonly cooling: number;
  /** Until the first of those that cool may be given. */
  readonly coolsForMs: number;
  /** Blocks that are being given back. */
  readonly returning: readonly string[];
}

type Entry = { -readonly [Field in keyof BlockEntry]: BlockEntry[Field] };

/** What the record and the journal allow. `unproven`: a word that was sent before this journal was made may still arrive. */
export type BlockState = "giving" | "returning" | "unproven";

/** A block with what is known of its addresses. */
export interface BlockEntry {
  readonly space: BlockSpace;
  readonly state: BlockState;
  /** Its owner is asked for it: it is given from last. */
  readonly recalled: boolean;
}

/**
 * The blocks of this node in memory: which addresses pods may be given that ask for none. It is told of every address
 * that any sandbox of the node has, wherever from; so nothing that is in use is chosen, whatever the records say.
 */
export class NodeBlocks implements AddressUse {
  readonly #now: () => number;
  readonly #blocks = new Map<string, Entry>(); // CIDR -> block
  readonly #ofPool = new Map<string, Set<Entry>>(); // pool -> its blocks
  readonly #lengths = new Map<string, number>(); // family and prefix length -> how many blocks have it
  readonly #byNumber = new Map<string, Entry>(); // family, length and number of the block -> block
  readonly #holders = new Map<Address, number>(); // address in use -> how many networks have it
  readonly #freed: FreedAddresses;

  /** `cooldownOf`: by the pools that one of these blocks may be of. */
  constructor(now: () => number, cooldownOf: CooldownOf = () => 0) {
    this.#now = now;
    this.#freed = new FreedAddresses(cooldownOf, now());
  }

  held(address: Address): void {
    const count = this.#holders.get(address) ?? 0;
    this.#holders.set(address, count + 1);
    this.#freed.delete(address);
    if (count === 0) for (const { space } of this.#around(address)) space.hold(toNumber(address));
  }

  freed(address: Address, at: number = this.#now()): void {
    const count = this.#holders.get(address) ?? 0;
    if (count > 1) {
      this.#holders.set(address, count - 1);
      return;
    }
    this.#holders.delete(address);
    this.#freed.forget(this.#now());
    this.#freed.set(address, at);
    for (const { space } of this.#around(address)) space.free(toNumber(address), at);
  }

  wasFreed(address: Address, at: number): void {
    if (!this.#holders.has(address) && at > (this.#freed.get(address) ?? 0)) this.freed(address, at);
  }

  /** The node has the block. One of the same CIDR, which was another incarnation, goes. */
  put(block: OwnedBlock, state: BlockState, { recalled = false } = {}): void {
    const there = this.#blocks.get(block.cidr);
    const isSame = there?.space.block.uid === block.uid;
    if (isSame && (there.space.block.holes.join() === block.holes.join() || there.space.withdraw(block))) {
      there.state = state;
      there.recalled = recalled;
      return;
    }
    this.remove(block.cidr);
    const entry: Entry = { space: new BlockSpace(block), state, recalled };
    this.#blocks.set(block.cidr, entry);
    this.#ofPool.set(block.pool, (this.#ofPool.get(block.pool) ?? new Set()).add(entry));
    const { family, prefixLength, base } = entry.space.network;
    const kind = `${family}/${prefixLength}`;
    this.#countLength(kind, 1);
    this.#byNumber.set(numberOf(kind, base), entry);
    const inIt = (address: Address) => familyOf(address) === family && entry.space.has(toNumber(address));
    for (const address of this.#holders.keys()) if (inIt(address)) entry.space.hold(toNumber(address));
    const freed = [...this.#freed.entries()]
      .filter(([address]) => inIt(address))
      .sort(([, a], [, b]) => a - b);
    for (const [address, at] of freed) entry.space.free(toNumber(address), at);
  }

  /** The block is another's, or nobody's. What sandboxes have of it they keep. */
  remove(cidr: string): void {
    const entry = this.#blocks.get(cidr);
    if (entry === undefined) return;
    const { block, network } = entry.space;
    this.#blocks.delete(cidr);
    const own = this.#ofPool.get(block.pool);
    own?.delete(entry);
    if (own?.size === 0) this.#ofPool.delete(block.pool);
    const kind = `${network.family}/${network.prefixLength}`;
    this.#countLength(kind, -1);
    this.#byNumber.delete(numberOf(kind, network.base));
  }

  /** Every block with what is known of its addresses. */
  *all(): Generator<BlockEntry, void, undefined> {
    yield* this.#blocks.values();
  }

  get(cidr: string): BlockEntry | undefined {
    return this.#blocks.get(cidr);
  }

  /** Addresses of the pool's blocks that cannot be given now: in use, or cooling. */
  unavailable(pool: string, family: Family): number {
    let count = 0;
    for (const { space } of this.#ofPool.get(pool) ?? [])
      if (space.family === family) count += space.used + space.cooling.count;
    return count;
  }

  /** No address of it is given from here on, unless one is in use: then it stays as it is. Nothing comes between the two. */
  stopGiving(cidr: string): boolean {
    const entry = this.#blocks.get(cidr);
    if (entry === undefined || entry.space.used > 0) return false;
    entry.state = "returning";
    return true;
  }

  /** So many addresses of the block that may be given now, or fewer. Takes nothing. */
  someFree(cidr: string, count: number, cooldownMs: number): readonly Address[] {
    const entry = this.#blocks.get(cidr);
    if (entry?.state !== "giving") return [];
    entry.space.endCooling(this.#now(), cooldownMs);
    return entry.space.someFree(count).map((n) => fromNumber(n, entry.space.family));
  }

  /** Whether a block of the pool that is given from has the address, and it may be given. */
  isFree(pool: string, address: Address, cooldownMs: number): boolean {
    for (const { state, space } of this.#around(address)) {
      if (state !== "giving" || space.block.pool !== pool) continue;
      space.endCooling(this.#now(), cooldownMs);
      if (space.isFree(toNumber(address))) return true;
    }
    return false;
  }

  /**
   * A free address of the pool's blocks, out of the one with the fewest, so that others become empty; of one that is asked
   * back only when no other has any. Takes nothing.
   */
  pick(pool: string, family: Family, cooldownMs: number): Address | BlockShortage {
    let best: BlockSpace | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const { space, state, recalled } of this.#ofPool.get(pool) ?? []) {
      if (state !== "giving" || space.family !== family) continue;
      space.endCooling(this.#now(), cooldownMs);
      const { available } = space;
      const rank = recalled ? available + RECALLED_RANK : available;
      if (available > 0 && rank < least) [best, least] = [space, rank];
    }
    const n = best?.nextFree();
    return n === undefined ? this.#shortage(pool, family, cooldownMs) : fromNumber(n, family);
  }

  #shortage(pool: string, family: Family, cooldownMs: number): BlockShortage {
    const entries = [...(this.#ofPool.get(pool) ?? [])].filter(({ space }) => space.family === family);
    const giving = entries.filter(({ state }) => state === "giving").map(({ space }) => space);
    const since = giving.flatMap(({ cooling }) => cooling.since ?? []);
    const first = since.length === 0 ? 0 : Math.min(...since) + cooldownMs - this.#now();
    return {
      kind: "shortage",
      family,
      blocks: giving.map(({ block }) => block.cidr).sort(),
      used: giving.reduce((sum, { used }) => sum + used, 0),
      cooling: giving.reduce((sum, { cooling }) => sum + cooling.count, 0),
      coolsForMs: Math.max(0, first),
      returning: entries
        .filter(({ state }) => state === "returning")
        .map(({ space }) => space.block.cidr)
        .sort(),
    };
  }

  #countLength(kind: string, by: number): void {
    const count = (this.#lengths.get(kind) ?? 0) + by;
    if (count > 0) this.#lengths.set(kind, count);
    else this.#lengths.delete(kind);
  }

  /**
   * More than one where a single address lies in another block, and for as long as this node knows of a block that is gone, and of
   * another one in its place.
   */
  *#around(address: Address): Generator<Entry, void, undefined> {
    const family = familyOf(address);
    const n = toNumber(address);
    for (const kind of this.#lengths.keys()) {
      const [of = "", length = ""] = kind.split("/");
      if (of !== family) continue;
      const bits = BigInt(bitsOf(family) - Number(length));
      const found = this.#byNumber.get(numberOf(kind, (n >> bits) << bits));
      if (found !== undefined) yield found;
    }
  }
}

function numberOf(kind: string, base: bigint): string {
  return `${kind}/${base}`;
}
