// SPDX-License-Identifier: Apache-2.0

import { ownedIn, ownedWithin } from "../../allocator/cache/block-index.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { type Address, type Family, familyOf, toNumber } from "../../allocator/ip/address.ts";
import type { IntervalSet } from "../../allocator/ip/interval-set.ts";
import { type Block, isHole } from "../../allocator/model/block.ts";
import { blockAround } from "../../allocator/pool/blocks.ts";
import {
  classify,
  intervalsOf,
  type Pool,
  poolOf,
  rangeOf,
  unavailableByDefault,
} from "../../allocator/pool/pool.ts";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import { MemoryRecords } from "./memory-records.ts";
import type { Observation } from "./process.ts";

/**
 * How far a view lags: it shows nothing at all, what there was before anybody did anything, what there was when
 * its process began, or what there is now.
 */
export type Lag = "nothing" | "seed" | "start" | "none";

/** Claims and reservations come by watches of their own, so that one may lag and the other not. */
export interface Lags {
  readonly claims: Lag;
  readonly reservations: Lag;
}

export const BLIND: Lags = { claims: "nothing", reservations: "nothing" };
export const LIVE: Lags = { claims: "none", reservations: "none" };

const EMPTY = new MemoryRecords();

/** The records of a lag: those of the moment, or copies of an earlier one. */
export function recordsFor(
  lag: Lag,
  now: MemoryRecords,
  copies: { readonly seed: MemoryRecords; readonly start: MemoryRecords },
): MemoryRecords {
  if (lag === "nothing") return EMPTY;
  return lag === "none" ? now : copies[lag];
}

/** Whoever looks: he hears what he is shown, and that he plans by it. */
export interface Reader {
  learn(observation: Observation): void;
  plans(): void;
}

/** Two pools may be over each other for a moment. */
function isOver(pool: Pool, block: Block, family: Family): boolean {
  return ownedWithin(block, intervalsOf(pool, family), family).length > 0;
}

/** A view over records. Whatever it shows is told to its reader. */
export class Sight implements RecordReader {
  readonly #pools: readonly Pool[];
  readonly #claims: MemoryRecords;
  readonly #reservations: MemoryRecords;
  readonly #reader: Reader | undefined;

  constructor(
    pools: readonly Pool[],
    from: { readonly claims: MemoryRecords; readonly reservations: MemoryRecords },
    reader?: Reader,
  ) {
    this.#pools = pools;
    this.#claims = from.claims;
    this.#reservations = from.reservations;
    this.#reader = reader;
  }

  pool(name: string): Pool | undefined {
    return this.#pools.find((pool) => pool.name === name);
  }

  poolOf(address: Address): Pool | undefined {
    this.#reader?.plans();
    return poolOf(this.#pools, address);
  }

  pools(): readonly Pool[] {
    this.#reader?.plans();
    return this.#pools;
  }

  reservation(address: Address): Stored<"reservation"> | undefined {
    return this.#one("reservation", address, this.#reservations.get("reservation", address));
  }

  blockOwning(address: Address): Block | undefined {
    for (const pool of this.#pools) {
      const around = rangeOf(pool, address) && blockAround(pool, address)?.text;
      if (around === undefined) continue;
      const block = this.#one("block", around, this.#reservations.get("block", around))?.record;
      if (block !== undefined && !isHole(block, address)) return block;
    }
    return undefined;
  }

  claim(key: string): Stored<"claim"> | undefined {
    return this.#one("claim", key, this.#claims.get("claim", key));
  }

  claims(): Iterable<Stored<"claim">> {
    return this.#all("claim", this.#claims.list("claim"));
  }

  claimsOfPod(namespace: string, name: string): readonly Stored<"claim">[] {
    return [...this.claims()].filter(
      ({ record }) =>
        record.namespace === namespace && (record.name === name || record.binding?.podName === name),
    );
  }

  reservations(): Iterable<Stored<"reservation">> {
    return this.#all("reservation", this.#reservations.list("reservation"));
  }

  held(pool: string, namespace: string): Readonly<Record<Family, number>> {
    return this.#counted("held", pool, namespace);
  }

  cooling(pool: string, namespace: string): Readonly<Record<Family, number>> {
    return this.#counted("cooling", pool, namespace);
  }

  taken(pool: string): Readonly<Record<Family, number>> {
    const all = [...this.reservations()].filter(({ record }) => record.pool === pool);
    const inIPv4 = all.filter(({ record }) => familyOf(record.address) === "IPv4").length;
    return { IPv4: inIPv4, IPv6: all.length - inIPv4 };
  }

  #counted(what: "held" | "cooling", pool: string, namespace: string): Readonly<Record<Family, number>> {
    const counted = this.#reservations
      .list("reservation")
      .filter(({ record }) => record.pool === pool && record.claim.namespace === namespace)
      .filter(({ record }) => (record.releasedAt === undefined) === (what === "held"));
    this.#reader?.learn({ text: `${what} ${counted.length}` });
    const inIPv4 = counted.filter(({ record }) => familyOf(record.address) === "IPv4").length;
    return { IPv4: inIPv4, IPv6: counted.length - inIPv4 };
  }

  unpickable(pool: Pool, family: Family): IntervalSet {
    const runs = unavailableByDefault(pool, family);
    const taken: string[] = [];
    for (const { record } of this.#reservations.list("reservation")) {
      if (familyOf(record.address) !== family || classify(pool, record.address) === "outside") continue;
      runs.add(toNumber(record.address));
      taken.push(record.address);
    }
    for (const { record } of this.#reservations.list("block")) {
      const owned = ownedIn(record);
      const isOther = record.pool !== pool.name && !isOver(pool, record, family);
      if (isOther || owned.family !== family) continue;
      for (const interval of owned.intervals) runs.addInterval(interval);
      taken.push(record.cidr, ...record.holes);
    }
    this.#reader?.learn({ text: `unpickable ${taken.join(" ")}` });
    return runs;
  }

  #one<K extends Kind>(kind: K, key: string, stored: Stored<K> | undefined): Stored<K> | undefined {
    this.#reader?.learn({ text: `view ${key}`, ...(stored && { kind, stored }) });
    return stored;
  }

  #all<K extends Kind>(kind: K, all: readonly Stored<K>[]): readonly Stored<K>[] {
    for (const stored of all) this.#one(kind, stored.key, stored);
    return all;
  }
}
