// SPDX-License-Identifier: Apache-2.0
// A store in memory with everything that acts on it, as the embedded stack puts it together.
import { setImmediate as nextTurn } from "node:timers/promises";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { FOLLOWED, RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { syncCache } from "../../allocator/cache/sync.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import { type AdmittedObjects, openAdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import { type Database, openDatabase } from "../../allocator/store/sqlite/database.ts";
import { integerOf } from "../../allocator/store/sqlite/sql.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import type { AdmissionContext } from "../../webhook/admission/admission-context.ts";
import { HastyClock, type ManualClock } from "./clock.ts";
import { SeededRandom } from "./random.ts";

export const KINDS: readonly Kind[] = ["pool", "claim", "reservation"];

export interface WorldOptions {
  readonly pools?: readonly PoolRecord[];
  readonly clock?: ManualClock;
  readonly seed?: number;
  /** Puts something between the acts and the store. */
  readonly wrap?: (store: Store) => Store;
}

export class World {
  readonly clock: ManualClock;
  readonly random: SeededRandom;
  /** What the acts see; `realStore` is what is really there. */
  readonly store: Store;
  readonly realStore: Store;
  readonly cache = new RecordCache(noopLogger);
  readonly objects: AdmittedObjects;
  readonly context: Context;
  readonly admission: AdmissionContext;
  /** Claims that admission pointed out to be judged soon. */
  readonly suspects: Claim[] = [];
  readonly #database: Database;
  readonly #abort = new AbortController();
  readonly #following: ReturnType<typeof syncCache>;
  /** What was found last, and after how many rows had been written. */
  #dumped: { readonly written: number; readonly text: string } | undefined;
  #currentAt: number | undefined;

  constructor(options: WorldOptions) {
    this.clock = options.clock ?? new HastyClock();
    this.random = new SeededRandom(options.seed);
    this.#database = openDatabase(":memory:");
    const deps = { clock: this.clock, random: this.random, log: noopLogger };
    this.realStore = openSqliteStore(this.#database, deps);
    this.store = options.wrap?.(this.realStore) ?? this.realStore;
    this.objects = openAdmittedObjects(this.#database);
    this.#following = syncCache(this.realStore, this.cache, this.#abort.signal, [...FOLLOWED, "block"]);
    this.context = { ...deps, store: this.store, view: this.cache, serial: new KeyedMutex() };
    const enqueueForGc = (claim: Claim) => void this.suspects.push(claim);
    this.admission = { context: this.context, inventory: this.objects, embedded: this.objects, enqueueForGc };
  }

  /** The context of another process on the same store: what one does alone, two do against each other. */
  another(seed: number, store: Store = this.store): Context {
    return { ...this.context, store, random: new SeededRandom(seed), serial: new KeyedMutex() };
  }

  collector(context: Context = this.context): GarbageCollector {
    return new GarbageCollector(context, this.objects);
  }

  /** Waits until the cache shows what the store has. */
  async settle(): Promise<void> {
    await this.#following.synced;
    for (let turn = 0; turn < 10_000; turn++) {
      if (this.#isCurrent()) return;
      await nextTurn();
    }
    throw new Error("the cache never caught up");
  }

  async all<K extends Kind>(kind: K): Promise<Stored<K>[]> {
    return await listed(this.realStore, kind);
  }

  /** Claims by key with their addresses, for comparing states. */
  async holdings(): Promise<Record<string, string>> {
    const claims = await this.all("claim");
    return Object.fromEntries(claims.map(({ key, record }) => [key, record.addresses.join(",")]));
  }

  /** Every row of every table, as text: equal before and after means that nothing was written. */
  dump(): string {
    const written = this.#written();
    if (this.#dumped?.written !== written) this.#dumped = { written, text: this.#render() };
    return this.#dumped.text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#following.ended;
    await this.realStore.close();
    this.#database.close();
  }

  /** Rows, undone ones too: as long as it is the same, every table is. */
  #written(): number {
    const row = this.#database.readOnce((sql) => sql.get("SELECT total_changes() AS rows"));
    return integerOf(row, "rows");
  }

  #render(): string {
    return this.#database.read((sql) => {
      const tables = sql.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
      const rows = tables.flatMap(({ name }) => [{ name }, ...sql.all(`SELECT * FROM "${name}"`)]);
      return rows.map((row) => Object.values(row).join("\t")).join("\n");
    });
  }

  /** It is asked for after every act, most of which write nothing; and what the store has comes into the cache only once. */
  #isCurrent(): boolean {
    const written = this.#written();
    if (this.#currentAt !== written && this.#showsAll()) this.#currentAt = written;
    return this.#currentAt === written;
  }

  /** By what is stored, undecoded. */
  #showsAll(): boolean {
    const { cache } = this;
    const rows = this.#database.readOnce((sql) => sql.all("SELECT kind, key, revision FROM records"));
    const stored = new Set(rows.map(({ kind, key, revision }) => `${kind} ${key} ${revision}`));
    const shown = [
      ...namesOf("pool", cache.poolRecords()),
      ...namesOf("claim", cache.claims()),
      ...namesOf("reservation", cache.reservations()),
      ...namesOf("block", cache.blocks()),
    ];
    return shown.length === stored.size && shown.every((name) => stored.has(name));
  }
}

function namesOf<K extends Kind>(kind: K, records: Iterable<Stored<K>>): readonly string[] {
  return [...records].map(({ key, revision }) => `${kind} ${key} ${revision}`);
}

/** Opens a world with these pools, its cache up to date. `await using` closes it. */
export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const world = new World(options);
  for (const pool of options.pools ?? []) await world.realStore.create("pool", pool);
  await world.settle();
  return world;
}
