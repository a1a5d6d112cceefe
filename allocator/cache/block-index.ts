// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, familyOf, parseCidr, toNumber } from "../ip/address.ts";
import { contains, fullInterval, type Interval, intersection, without } from "../ip/ip-range.ts";
import { type Block, holesOf, isHole, networkOfBlock } from "../model/block.ts";
import { type AddressSpace, intervalsOf } from "../pool/address-space.ts";
import type { Stored } from "../store/store.ts";

/** The blocks that were seen, and what of them is not to be picked for anybody else. */
export class BlockIndex {
  readonly blocks = new Map<string, Stored<"block">>(); // CIDR -> block
  readonly #ofPool = new Map<string, Map<string, Stored<"block">>>(); // pool -> CIDR -> block
  readonly #hulls = new Map<string, Map<Family, Interval>>(); // pool -> from its first block to its last, or more
  readonly #lengths = new Map<string, number>(); // prefix length -> how many blocks have it, the longest first
  #singles = 0;

  /** There are blocks within blocks. */
  get hasSingles(): boolean {
    return this.#singles > 0;
  }

  enter(stored: Stored<"block">): void {
    if (stored.record.within !== undefined) this.#singles++;
    this.blocks.set(stored.key, stored);
    const { pool } = stored.record;
    const own = this.#ofPool.get(pool) ?? new Map<string, Stored<"block">>();
    this.#ofPool.set(pool, own.set(stored.key, stored));
    this.#widen(pool, stored.key);
    this.#count(stored.key, 1);
  }

  leave({ key, record: { pool, within } }: Stored<"block">): void {
    if (within !== undefined) this.#singles--;
    this.blocks.delete(key);
    const own = this.#ofPool.get(pool);
    own?.delete(key);
    if (own?.size === 0) {
      this.#ofPool.delete(pool);
      this.#hulls.delete(pool);
    }
    this.#count(key, -1);
  }

  /**
   * The block whose owner has the address for itself, of whatever pool: the smallest, where one lies within another. Two pools
   * that overlap must not stand, and may for a moment; and a block may be left outside of its pool.
   */
  owning(address: Address): Block | undefined {
    for (const length of this.#lengths.keys()) {
      const block = this.blocks.get(parseCidr(`${address}/${length}`)?.text ?? "")?.record;
      if (block !== undefined && !isHole(block, address)) return block;
    }
    return undefined;
  }

  /** Blocks, of whatever pool, whose owners have addresses of these ranges for themselves. */
  *over(space: AddressSpace, family: Family): Generator<OwnedPart, void, undefined> {
    const spans = intervalsOf(space, family);
    for (const pool of this.#near(spans, family)) {
      for (const { record } of this.ofPool(pool)) {
        const intervals = ownedWithin(record, spans, family);
        if (intervals.length > 0) yield { block: record, intervals };
      }
    }
  }

  /** Whether another pool may have blocks there; it may say so of none. */
  mayBeShared({ cidr, pool }: Block): boolean {
    const network = parseCidr(cidr);
    if (network === undefined) return false;
    return this.#near([fullInterval(network)], network.family).some((other) => other !== pool);
  }

  #near(spans: readonly Interval[], family: Family): readonly string[] {
    return [...this.#hulls].flatMap(([pool, hulls]) => {
      const hull = hulls.get(family);
      return hull !== undefined && spans.some((span) => intersection(span, hull)) ? [pool] : [];
    });
  }

  #widen(pool: string, cidr: string): void {
    const network = parseCidr(cidr);
    if (network === undefined) return;
    const own = fullInterval(network);
    const hulls = this.#hulls.get(pool) ?? new Map<Family, Interval>();
    const hull = hulls.get(network.family) ?? own;
    hulls.set(network.family, {
      first: (own.first < hull.first ? own : hull).first,
      last: (own.last > hull.last ? own : hull).last,
    });
    this.#hulls.set(pool, hulls);
  }

  #count(cidr: string, by: number): void {
    const length = cidr.slice(cidr.indexOf("/") + 1);
    const count = (this.#lengths.get(length) ?? 0) + by;
    const isNew = !this.#lengths.has(length);
    if (count === 0) this.#lengths.delete(length);
    else this.#lengths.set(length, count);
    if (!isNew) return;
    const sorted = [...this.#lengths].sort(([a], [b]) => Number(b) - Number(a));
    this.#lengths.clear();
    for (const [one, n] of sorted) this.#lengths.set(one, n);
  }

  ofPool(pool: string): Iterable<Stored<"block">> {
    return this.#ofPool.get(pool)?.values() ?? [];
  }
}

export interface Owned {
  readonly family: Family;
  readonly intervals: readonly Interval[];
}

/** The addresses that the block's owner has for itself: all but the holes. Before it is granted, too: it soon will be. */
export function ownedIn(block: Block): Owned {
  const cidr = networkOfBlock(block.cidr);
  return { family: cidr.family, intervals: without([fullInterval(cidr)], holesOf(block)) };
}

/** What of these addresses is a block's owner's. */
export interface OwnedPart {
  readonly block: Block;
  readonly intervals: readonly Interval[];
}

/** What its owner has for itself of these addresses. */
export function ownedWithin(block: Block, spans: readonly Interval[], family: Family): readonly Interval[] {
  const owned = ownedIn(block);
  return owned.family === family ? shared(owned.intervals, spans) : [];
}

/** What is in both. */
export function shared(some: readonly Interval[], others: readonly Interval[]): readonly Interval[] {
  return others.flatMap((other) => some.flatMap((one) => intersection(other, one) ?? []));
}

/** Whether the block's owner has the address for itself. */
export function isOwnedIn(block: Block, address: Address): boolean {
  const cidr = parseCidr(block.cidr);
  if (cidr === undefined || cidr.family !== familyOf(address)) return false;
  return contains(fullInterval(cidr), toNumber(address)) && !isHole(block, address);
}
