// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../base/errors.ts";
import { type Address, type Family, familyOf, parseCidr, toNumber } from "../ip/address.ts";
import { contains, fullInterval, type Interval, without } from "../ip/ip-range.ts";
import { type Block, holesOf, isHole } from "../model/block.ts";
import type { Stored } from "../store/store.ts";

/** The blocks that were seen, and what of them is not to be picked for anybody else. */
export class BlockIndex {
  readonly blocks = new Map<string, Stored<"block">>(); // CIDR -> block
  readonly #ofPool = new Map<string, Map<string, Stored<"block">>>(); // pool -> CIDR -> block
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
    this.#count(stored.key, 1);
  }

  leave({ key, record: { pool, within } }: Stored<"block">): void {
    if (within !== undefined) this.#singles--;
    this.blocks.delete(key);
    const own = this.#ofPool.get(pool);
    own?.delete(key);
    if (own?.size === 0) this.#ofPool.delete(pool);
    this.#count(key, -1);
  }

  /** The block of the pool whose owner has the address for itself: the smallest, where one lies within another. */
  owning(pool: string, address: Address): Block | undefined {
    for (const length of this.#lengths.keys()) {
      const block = this.blocks.get(parseCidr(`${address}/${length}`)?.text ?? "")?.record;
      if (block?.pool === pool && !isHole(block, address)) return block;
    }
    return undefined;
  }

  /** What owners of blocks of the pool have for themselves. */
  *owned(pool: string, family: Family): Generator<Interval, void, undefined> {
    for (const { record } of this.ofPool(pool)) {
      const owned = ownedIn(record);
      if (owned.family === family) yield* owned.intervals;
    }
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

/** The addresses that the block's owner has for itself: all but the holes. Before it is granted, too: it soon will be. */
export function ownedIn(block: Block): { readonly family: Family; readonly intervals: readonly Interval[] } {
  const cidr = parseCidr(block.cidr);
  if (cidr === undefined) throw new BerthError("INTERNAL", `${block.cidr} is no block`);
  return { family: cidr.family, intervals: without([fullInterval(cidr)], holesOf(block)) };
}

/** Whether the block's owner has the address for itself. */
export function isOwnedIn(block: Block, address: Address): boolean {
  const cidr = parseCidr(block.cidr);
  if (cidr === undefined || cidr.family !== familyOf(address)) return false;
  return contains(fullInterval(cidr), toNumber(address)) && !isHole(block, address);
}
