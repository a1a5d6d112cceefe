// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../base/errors.ts";
import type { Logger } from "../base/ports.ts";
import { type Address, type Family, familyOf, fromNumber, toNumber } from "../ip/address.ts";
import type { IntervalSet } from "../ip/interval-set.ts";
import type { Block } from "../model/block.ts";
import { claimKey } from "../model/claim.ts";
import {
  classify,
  type Pool,
  type PoolRecord,
  parseStoredPool,
  poolOf,
  rangeOf,
  unavailableByDefault,
} from "../pool/pool.ts";
import type { Change, Kind, Store, Stored } from "../store/store.ts";
import { BlockIndex, ownedIn } from "./block-index.ts";
import { ClaimIndex } from "./claim-index.ts";
import { RecordInterner } from "./interning.ts";
import type { RecordReader } from "./reader.ts";

/** What changed under a key; `now` undefined: gone, `before` undefined: new. Only enqueues: it is called in the middle of a change. */
export type RecordHandler<K extends Kind> = (
  key: string,
  now: Stored<K> | undefined,
  before: Stored<K> | undefined,
) => void;

type Held = Readonly<Record<Family, number>>;

const NONE: Held = { IPv4: 0, IPv6: 0 };

type Handlers = { readonly [K in Kind]: Set<RecordHandler<K>> };

/** What everybody follows. Blocks are followed by those alone who have to do with them. */
export const FOLLOWED: readonly Kind[] = ["pool", "claim", "reservation"];

/**
 * A view kept in memory from the store's watches. One owner applies changes; readers see whole changes only,
 * because nothing here awaits.
 */
export class RecordCache implements RecordReader {
  readonly #log: Logger;
  readonly #pools = new Map<string, Pool>(); // pool name -> pool
  readonly #poolRecords = new Map<string, Stored<"pool">>(); // pool name -> record
  readonly #reservations = new Map<string, Stored<"reservation">>(); // address -> reservation
  readonly #unpickable = new Map<string, IntervalSet>(); // pool/family -> numbers not to pick
  readonly #held = new Map<string, Held>(); // pool/namespace -> addresses
  readonly #stale = new Map<Kind, Set<string>>(); // kind -> keys not seen again in the running relist
  readonly #synced = new Set<Kind>();
  readonly #claims = new ClaimIndex();
  readonly #blocks = new BlockIndex();
  readonly #interned = new RecordInterner();
  readonly #handlers: Handlers = {
    ...{ pool: new Set(), claim: new Set(), reservation: new Set(), block: new Set() },
  };
  #ordered: readonly Pool[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Every kind that all need was listed whole at least once. */
  get ready(): boolean {
    return FOLLOWED.every((kind) => this.#synced.has(kind));
  }

  /** The kind was listed whole at least once. */
  knows(kind: Kind): boolean {
    return this.#synced.has(kind);
  }

  pool(name: string): Pool | undefined {
    return this.#pools.get(name);
  }

  poolOf(address: Address): Pool | undefined {
    return poolOf(this.#ordered, address);
  }

  pools(): readonly Pool[] {
    return this.#ordered;
  }

  /** Those that cannot be used too. */
  poolRecords(): Iterable<Stored<"pool">> {
    return this.#poolRecords.values();
  }

  poolRecord(name: string): Stored<"pool"> | undefined {
    return this.#poolRecords.get(name);
  }

  reservation(address: Address): Stored<"reservation"> | undefined {
    return this.#reservations.get(address);
  }

  reservations(): Iterable<Stored<"reservation">> {
    return this.#reservations.values();
  }

  block(cidr: string): Stored<"block"> | undefined {
    return this.#blocks.blocks.get(cidr);
  }

  blockOwning(address: Address): Block | undefined {
    const home = this.poolOf(address);
    return home && this.#blocks.owning(home.name, address);
  }

  blocksOf(pool: string): Iterable<Stored<"block">> {
    return this.#blocks.ofPool(pool);
  }

  /** Those of pools that are gone, too. */
  blocks(): Iterable<Stored<"block">> {
    return this.#blocks.blocks.values();
  }

  claim(key: string): Stored<"claim"> | undefined {
    return this.#claims.claims.get(key);
  }

  claims(): Iterable<Stored<"claim">> {
    return this.#claims.claims.values();
  }

  claimsOfPod(namespace: string, name: string): readonly Stored<"claim">[] {
    return this.#claims.ofPod(namespace, name);
  }

  claimsOfWorkload(kind: string, namespace: string, name: string): readonly Stored<"claim">[] {
    return this.#claims.ofWorkload(kind, namespace, name);
  }

  claimsOnNode(node: string): readonly Stored<"claim">[] {
    return this.#claims.onNode(node);
  }

  /** Calls the handler at every change of the kind from here on, after the change; gives what takes it away again. */
  onChange<K extends Kind>(kind: K, handler: RecordHandler<K>): () => void {
    const handlers: Set<RecordHandler<K>> = this.#handlers[kind];
    handlers.add(handler);
    return () => handlers.delete(handler);
  }

  held(pool: string, namespace: string): Held {
    return this.#held.get(`${pool}/${namespace}`) ?? NONE;
  }

  inOrder(): boolean {
    return this.#synced.has("reservation") && !this.#stale.has("reservation");
  }

  unpickable(pool: Pool, family: Family): IntervalSet {
    const key = `${pool.name}/${family}`;
    const known = this.#unpickable.get(key);
    if (known !== undefined) return known;
    const runs = unavailableByDefault(pool, family);
    for (const { record } of this.#reservations.values()) {
      if (familyOf(record.address) === family && classify(pool, record.address) !== "outside") {
        runs.add(toNumber(record.address));
      }
    }
    for (const interval of this.#blocks.owned(pool.name, family)) runs.addInterval(interval);
    this.#unpickable.set(key, runs);
    return runs;
  }

  /** Takes one change of a watch. `gone` of a key never seen is nothing. */
  apply<K extends Kind>(kind: K, change: Change<K>): void {
    switch (change.type) {
      case "relist":
        this.#stale.set(kind, new Set(this.#of(kind).keys()));
        return;
      case "synced":
        for (const key of this.#stale.get(kind) ?? []) this.#change(kind, key);
        this.#stale.delete(kind);
        this.#synced.add(kind);
        return;
      case "gone":
        this.#change(kind, change.key);
        return;
      default:
        this.#stale.get(kind)?.delete(change.stored.key);
        this.#change(kind, change.stored.key, change.stored);
    }
  }

  /** A full pass brings everything again: handlers hear of differences only. */
  #change<K extends Kind>(kind: K, key: string, came?: Stored<K>): void {
    const before = this.#of(kind).get(key);
    if (before?.revision === came?.revision && before?.uid === came?.uid) return;
    const now = came && (this.#intern(kind, came) as Stored<K>);
    if (now === undefined) this.#drop(kind, key);
    else this.#put(kind, now);
    for (const handler of this.#handlers[kind] as Set<RecordHandler<K>>) {
      try {
        handler(key, now, before);
      } catch (error) {
        this.#log.error("handler of a change failed", { kind, key, error });
      }
    }
  }

  #intern(kind: Kind, stored: Stored<Kind>): Stored<Kind> {
    if (kind === "claim") {
      const { record } = stored as Stored<"claim">;
      const [address] = record.addresses;
      const reservation = address === undefined ? undefined : this.#reservations.get(address)?.record;
      return this.#interned.claim(stored as Stored<"claim">, reservation);
    }
    if (kind === "pool" || kind === "block") return stored;
    const { claim } = (stored as Stored<"reservation">).record;
    return this.#interned.reservation(stored as Stored<"reservation">, this.claim(claimKey(claim))?.record);
  }

  #of<K extends Kind>(kind: K): ReadonlyMap<string, Stored<K>> {
    const records = {
      pool: this.#poolRecords,
      claim: this.#claims.claims,
      reservation: this.#reservations,
      block: this.#blocks.blocks,
    };
    return records[kind] as ReadonlyMap<string, Stored<Kind>> as ReadonlyMap<string, Stored<K>>;
  }

  #put(kind: Kind, stored: Stored<Kind>): void {
    if (kind === "claim") {
      this.#dropClaim(stored.key);
      this.#claims.enter(stored as Stored<"claim">);
    } else if (kind === "reservation") {
      this.#dropReservation(stored.key);
      this.#addReservation(stored as Stored<"reservation">);
    } else if (kind === "block") {
      this.#putBlock(stored as Stored<"block">);
    } else {
      this.#putPool(stored as Stored<"pool">);
    }
  }

  #drop(kind: Kind, key: string): void {
    if (kind === "claim") {
      this.#dropClaim(key);
    } else if (kind === "reservation") {
      this.#dropReservation(key);
    } else if (kind === "block") {
      this.#dropBlock(key);
    } else {
      this.#poolRecords.delete(key);
      this.#pools.delete(key);
      this.#reorder(key);
    }
  }

  #putBlock(stored: Stored<"block">): void {
    this.#dropBlock(stored.key);
    this.#blocks.enter(stored);
    const owned = ownedIn(stored.record);
    const runs = this.#unpickable.get(`${stored.record.pool}/${owned.family}`);
    for (const interval of owned.intervals) runs?.addInterval(interval);
  }

  #dropBlock(key: string): void {
    const stored = this.#blocks.blocks.get(key);
    if (stored === undefined) return;
    this.#blocks.leave(stored);
    const { family, intervals } = ownedIn(stored.record);
    const home = this.#pools.get(stored.record.pool);
    const runs = this.#unpickable.get(`${stored.record.pool}/${family}`);
    if (home === undefined || runs === undefined) return;
    for (const { first, last } of intervals) {
      for (let n = first; n <= last; n++) {
        const address = fromNumber(n, family);
        if (classify(home, address) === "open" && !this.#reservations.has(address)) runs.remove(n);
      }
    }
  }

  #dropClaim(key: string): void {
    const stored = this.#claims.claims.get(key);
    if (stored !== undefined) this.#claims.leave(stored);
  }

  #putPool(stored: Stored<"pool">): void {
    const before = this.#poolRecords.get(stored.key);
    this.#poolRecords.set(stored.key, stored);
    // its status is written often, and what is made of its spec is dear
    if (isDeepStrictEqual(before?.record, stored.record)) return;
    const pool = parseStoredPool(stored.record satisfies PoolRecord);
    if (isRefusal(pool)) {
      // It passed the validator once; an unreadable pool hands out nothing rather than something wrong.
      this.#log.error("pool cannot be used", { pool: stored.key, code: pool.code, error: pool.message });
      this.#pools.delete(stored.key);
    } else {
      this.#pools.set(stored.key, pool);
    }
    this.#reorder(stored.key);
  }

  #reorder(changed: string): void {
    this.#unpickable.delete(`${changed}/IPv4`);
    this.#unpickable.delete(`${changed}/IPv6`);
    this.#ordered = [...this.#pools.values()].sort(
      (a, b) => b.priority - a.priority || (a.name < b.name ? -1 : 1),
    );
  }

  #addReservation(stored: Stored<"reservation">): void {
    const { address, pool, claim, releasedAt } = stored.record;
    this.#reservations.set(stored.key, stored);
    if (releasedAt === undefined) this.#count(`${pool}/${claim.namespace}`, familyOf(address), 1);
    for (const { runs } of this.#runsOf(address)) runs.add(toNumber(address));
  }

  #dropReservation(key: string): void {
    const stored = this.#reservations.get(key);
    if (stored === undefined) return;
    const { address, pool, claim, releasedAt } = stored.record;
    this.#reservations.delete(key);
    if (releasedAt === undefined) this.#count(`${pool}/${claim.namespace}`, familyOf(address), -1);
    for (const { pool: home, runs } of this.#runsOf(address)) {
      if (classify(home, address) === "open" && this.#blocks.owning(home.name, address) === undefined)
        runs.remove(toNumber(address));
    }
  }

  /** Of every pool that contains the address: two that overlap must not stand, and may for a moment. */
  #runsOf(address: Address): readonly { readonly pool: Pool; readonly runs: IntervalSet }[] {
    const family = familyOf(address);
    return this.#ordered.flatMap((pool) => {
      const runs = this.#unpickable.get(`${pool.name}/${family}`);
      return runs === undefined || rangeOf(pool, address) === undefined ? [] : [{ pool, runs }];
    });
  }

  #count(key: string, family: Family, by: number): void {
    const before = this.#held.get(key) ?? NONE;
    const next = { ...before, [family]: before[family] + by };
    if (next.IPv4 + next.IPv6 === 0) this.#held.delete(key);
    else this.#held.set(key, next);
  }
}

/**
 * A running follow: `pools` once they were listed whole, `synced` once everything was, `ended` when the signal ended it
 * or a watch failed.
 */
export interface CacheSync {
  readonly pools: Promise<void>;
  readonly synced: Promise<void>;
  readonly ended: Promise<void>;
}

/** Keeps the mirror up to date in these kinds until `signal` aborts. Its promises reject with what a watch throws (STATE_CORRUPT). */
export function syncCache(
  store: Store,
  cache: RecordCache,
  signal: AbortSignal,
  kinds: readonly Kind[] = FOLLOWED,
): CacheSync {
  const waits = kinds.map(() => Promise.withResolvers<void>());
  const pumps = kinds.map((kind, i) =>
    pump(store, cache, { kind, signal, synced: () => waits[i]?.resolve() }),
  );
  const ended = Promise.all(pumps).then(() => undefined);
  const pools = Promise.race([waits[0]?.promise, ended]);
  const synced = Promise.race([Promise.all(waits.map((w) => w.promise)).then(() => undefined), ended]);
  for (const wait of [pools, synced]) wait.catch(() => {}); // not everybody waits for both, and `ended` says the same
  return { pools, synced, ended };
}

async function pump(
  store: Store,
  cache: RecordCache,
  to: { kind: Kind; signal: AbortSignal; synced: () => void },
): Promise<void> {
  for await (const change of store.watch(to.kind, to.signal)) {
    cache.apply(to.kind, change);
    if (change.type === "synced") to.synced();
  }
}
