// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, familyOf, fromNumber, toNumber } from "../ip/address.ts";
import type { IntervalSet } from "../ip/interval-set.ts";
import { type Interval, intersection } from "../ip/ip-range.ts";
import { isOfPool, type Occupant } from "../model/occupant.ts";
import { classify, intervalsOf, type Pool, rangeOf, unavailableByDefault } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import { type BlockIndex, type Owned, ownedIn, shared } from "./block-index.ts";
import { KeptRecords } from "./kept-records.ts";
import { ReservationPacking } from "./packed-records.ts";
import type { PoolIndex } from "./pool-index.ts";

/** So many addresses, by family. */
export type Held = Readonly<Record<Family, number>>;

/** A pool's addresses that have a reservation. */
export interface PoolTotals {
  readonly held: Held;
  readonly cooling: Held;
}

interface Runs {
  readonly pool: Pool;
  /** Numbers of it that are not to be picked. */
  readonly runs: IntervalSet;
}

interface Unpickable extends Runs {
  readonly family: Family;
  /** Its ranges. */
  readonly spans: readonly Interval[];
}

interface RunsOf extends Runs {
  readonly family: Family;
  /** Another block may have some of the addresses. */
  readonly isShared: boolean;
}

const NONE: Held = { IPv4: 0, IPv6: 0 };

/** Which addresses cannot be picked, because they are reserved, in a node's block or in use by others; and how many each namespace holds or lets cool down. */
export class AddressUse {
  readonly #pools: PoolIndex;
  readonly #blocks: BlockIndex;
  readonly reservations = new KeptRecords(new ReservationPacking()); // by address
  readonly occupants = new Map<Address, Occupant>(); // address -> who has it, and not from Berth
  readonly #unpickable = new Map<string, Unpickable>(); // pool/family -> numbers not to pick
  readonly #held = new Map<string, Held>(); // pool/namespace -> addresses
  readonly #cooling = new Map<string, Held>(); // pool/namespace -> addresses

  constructor(pools: PoolIndex, blocks: BlockIndex) {
    this.#pools = pools;
    this.#blocks = blocks;
  }

  held(pool: string, namespace: string): Held {
    return this.#held.get(`${pool}/${namespace}`) ?? NONE;
  }

  cooling(pool: string, namespace: string): Held {
    return this.#cooling.get(`${pool}/${namespace}`) ?? NONE;
  }

  /** Held or cooling, in whatever namespace. */
  taken(pool: string): Held {
    const sum = { ...NONE };
    for (const counts of [this.#held, this.#cooling]) {
      for (const [key, { IPv4, IPv6 }] of counts) {
        if (!key.startsWith(`${pool}/`)) continue;
        sum.IPv4 += IPv4;
        sum.IPv6 += IPv6;
      }
    }
    return sum;
  }

  /** Of all pools at once, in whatever namespace. */
  totals(): ReadonlyMap<string, PoolTotals> {
    const totals = new Map<string, { held: Held; cooling: Held }>();
    for (const [what, counts] of [["held", this.#held] as const, ["cooling", this.#cooling] as const]) {
      for (const [key, { IPv4, IPv6 }] of counts) {
        const pool = key.slice(0, key.indexOf("/"));
        const total = totals.get(pool) ?? { held: NONE, cooling: NONE };
        total[what] = { IPv4: total[what].IPv4 + IPv4, IPv6: total[what].IPv6 + IPv6 };
        totals.set(pool, total);
      }
    }
    return totals;
  }

  unpickable(pool: Pool, family: Family): IntervalSet {
    const key = `${pool.name}/${family}`;
    const known = this.#unpickable.get(key);
    if (known !== undefined) return known.runs;
    const runs = unavailableByDefault(pool, family);
    for (const key of this.reservations.keys()) {
      const address = key as Address; // a reservation's key is its address
      if (familyOf(address) === family && classify(pool, address) !== "outside") runs.add(toNumber(address));
    }
    for (const { intervals } of this.#blocks.over(pool, family))
      for (const interval of intervals) runs.addInterval(interval);
    for (const [address, occupant] of this.occupants) {
      const isIn = familyOf(address) === family && rangeOf(pool, address) !== undefined;
      if (isIn && isOfPool(occupant, pool)) runs.add(toNumber(address));
    }
    this.#unpickable.set(key, { pool, family, runs, spans: intervalsOf(pool, family) });
    return runs;
  }

  /** After the pool has come, gone or changed its spec. */
  recount(pool: string): void {
    this.#unpickable.delete(`${pool}/IPv4`);
    this.#unpickable.delete(`${pool}/IPv6`);
  }

  addReservation(stored: Stored<"reservation">): void {
    const { address } = stored.record;
    const before = this.reservations.get(stored.key);
    if (before !== undefined) this.#count(before, -1);
    this.reservations.set(stored);
    this.#count(stored, 1);
    for (const { runs } of this.#runsOf(address)) runs.add(toNumber(address));
  }

  dropReservation(key: string): void {
    const stored = this.reservations.get(key);
    if (stored === undefined) return;
    const { address } = stored.record;
    this.reservations.delete(key);
    this.#count(stored, -1);
    this.#reopen(address);
  }

  /** The address is in use, and Berth did not give it. */
  occupy(address: Address, occupant: Occupant): void {
    this.vacate(address);
    this.occupants.set(address, occupant);
    for (const { pool, runs } of this.#runsOf(address)) {
      if (isOfPool(occupant, pool)) runs.add(toNumber(address));
    }
  }

  vacate(address: Address): void {
    if (this.occupants.delete(address)) this.#reopen(address);
  }

  /** It may be picked again, unless something else keeps it. */
  #reopen(address: Address): void {
    for (const { pool, runs } of this.#runsOf(address))
      if (this.#isPickable(pool, address)) runs.remove(toNumber(address));
  }

  #isPickable(pool: Pool, address: Address): boolean {
    return this.#isOpen(pool, address) && this.#blocks.owning(address) === undefined;
  }

  /** All blocks, of any owner. */
  #isOpen(pool: Pool, address: Address): boolean {
    const occupant = this.occupants.get(address);
    if (classify(pool, address) !== "open" || this.reservations.has(address)) return false;
    return occupant === undefined || !isOfPool(occupant, pool);
  }

  addBlock({ record }: Stored<"block">): void {
    for (const { runs, intervals } of this.#runsOver(ownedIn(record)))
      for (const interval of intervals) runs.addInterval(interval);
  }

  dropBlock({ record }: Stored<"block">): void {
    const owned = ownedIn(record);
    const { family } = owned;
    const isShared =
      record.within !== undefined || this.#blocks.hasSingles || this.#blocks.mayBeShared(record);
    for (const { pool, runs, intervals } of this.#runsOver(owned)) {
      // a CIDR of a node may have more addresses than can be walked over
      if (record.use !== undefined) this.recount(pool.name);
      else for (const interval of intervals) this.#freed(interval, { pool, runs, family, isShared });
    }
  }

  #freed({ first, last }: Interval, { pool, runs, family, isShared }: RunsOf): void {
    for (let n = first; n <= last; n++) {
      const address = fromNumber(n, family);
      if (!this.#isOpen(pool, address)) continue;
      if (!isShared || this.#blocks.owning(address) === undefined) runs.remove(n);
    }
  }

  /** Of every pool that has addresses which the block's owner has for itself, and which those are. */
  *#runsOver(owned: Owned): Generator<Runs & { readonly intervals: readonly Interval[] }, void, undefined> {
    const [first, last] = [owned.intervals[0], owned.intervals.at(-1)];
    if (first === undefined || last === undefined) return;
    const hull = { first: first.first, last: last.last };
    for (const known of this.#unpickable.values()) {
      // most pools are elsewhere, and there may be many
      if (known.family !== owned.family || !known.spans.some((span) => intersection(span, hull))) continue;
      const intervals = shared(owned.intervals, known.spans);
      if (intervals.length > 0) yield { ...known, intervals };
    }
  }

  /** Of every pool that contains the address. Pools must not overlap, but two may for a moment. */
  #runsOf(address: Address): readonly Runs[] {
    const family = familyOf(address);
    return this.#pools.ordered.flatMap((pool) => {
      const runs = this.#unpickable.get(`${pool.name}/${family}`)?.runs;
      return runs === undefined || rangeOf(pool, address) === undefined ? [] : [{ pool, runs }];
    });
  }

  #count({ record: { address, pool, claim, releasedAt } }: Stored<"reservation">, by: number): void {
    const counts = releasedAt === undefined ? this.#held : this.#cooling;
    const key = `${pool}/${claim.namespace}`;
    const family = familyOf(address);
    const before = counts.get(key) ?? NONE;
    const next = { ...before, [family]: before[family] + by };
    if (next.IPv4 + next.IPv6 === 0) counts.delete(key);
    else counts.set(key, next);
  }
}
