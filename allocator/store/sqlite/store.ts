// SPDX-License-Identifier: Apache-2.0

import { setImmediate as nextTurn } from "node:timers/promises";
import { BerthError } from "../../base/errors.ts";
import type { Clock, Logger, Random } from "../../base/ports.ts";
import type { BlockStatus } from "../../model/block.ts";
import type { Claim, ClaimStatus } from "../../model/claim.ts";
import { encodeRecord, keyOf } from "../codec.ts";
import type {
  Change,
  CreateResult,
  Kind,
  Records,
  RemoveResult,
  ReplaceResult,
  Store,
  Stored,
} from "../store.ts";
import { asCreated, mustBeOpen, withStatusOf } from "../writes.ts";
import { ChangeFeed } from "./change-feed.ts";
import type { Database } from "./database.ts";
import { CHUNK, drop, LOG_START, put, readOne, readPage, STEPS, storedOf, type Written } from "./rows.ts";
import { type Row, type Sql, textColumn, type Work } from "./sql.ts";

const KEPT_CHANGES = 20_000;

export interface SqliteStoreDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Changes that a watcher may be behind before it has to start over, 20,000 if absent. */
  readonly keptChanges?: number;
}

/**
 * The store in a SQLite file or in memory. Closing it ends its watches; the database belongs to whoever opened it
 * and is closed by him. Throws CONFIG_INVALID for tables that a newer Berth made.
 */
export function openSqliteStore(database: Database, deps: SqliteStoreDeps): Store {
  database.migrate("records", STEPS);
  return new SqliteStore(database, deps);
}

class SqliteStore implements Store {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #kept: number;
  readonly #feed: ChangeFeed;
  readonly #closing = new AbortController();

  constructor(database: Database, deps: SqliteStoreDeps) {
    this.#database = database;
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#kept = Math.max(1, deps.keptChanges ?? KEPT_CHANGES); // the newest carries the counter
    this.#feed = new ChangeFeed(database, deps);
  }

  async create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    const key = keyOf(kind, record);
    const body = encodeRecord(kind, asCreated(kind, record));
    const createdAt = Math.floor(this.#clock.now());
    return this.#write((sql) => {
      const there = readOne(sql, kind, key);
      if (there !== undefined) return { kind: "exists", stored: storedOf(kind, there) };
      const row = this.#put(sql, kind, { key, uid: this.#random.token(), createdAt, body });
      return { kind: "created", stored: storedOf(kind, row) };
    });
  }

  async get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    mustBeOpen(this.#closing);
    const row = this.#database.readOnce((sql) => readOne(sql, kind, key));
    return row && storedOf(kind, row);
  }

  async replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    mustKeepKey(kind, seen, next);
    return this.#change(kind, seen, (there) => withStatusOf<K>(there, next));
  }

  async replaceClaim(seen: Stored<"claim">, next: Claim): Promise<ReplaceResult<"claim">> {
    mustKeepKey("claim", seen, next);
    return this.#change("claim", seen, () => next);
  }

  async report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return this.#change("claim", seen, (there) => ({ ...there, status }));
  }

  async reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">> {
    return this.#change("block", seen, (there) => ({ ...there, status }));
  }

  async remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    return this.#write((sql) => {
      const row = readSeen(sql, kind, seen);
      if (row === undefined) return { kind: "conflict" };
      drop(sql, kind, row, this.#kept);
      this.#database.noteChange();
      return { kind: "removed" };
    });
  }

  async *list<K extends Kind>(kind: K, namespace?: string): AsyncGenerator<Stored<K>, void, void> {
    mustBeOpen(this.#closing);
    const snapshot = this.#database.snapshot();
    if (snapshot === undefined) {
      yield* decoded(kind, this.#copyOf(kind));
      return;
    }
    try {
      const of = namespace === undefined ? LOG_START : `${namespace}/`;
      for (let after = of; ; ) {
        const rows = readPage(snapshot, kind, { after, rows: CHUNK });
        yield* decoded(kind, rows);
        const last = rows.at(-1);
        if (last === undefined || !textColumn(last, "key").startsWith(of)) return;
        after = textColumn(last, "key");
      }
    } finally {
      snapshot.close();
    }
  }

  watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncIterable<Change<K>> {
    return this.#feed.follow(kind, AbortSignal.any([signal, this.#closing.signal]));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#feed.close();
  }

  /** Memory has no second connection to hold the moment: its rows are copied at once, some 2 µs for each. */
  #copyOf(kind: Kind): readonly Row[] {
    const all = { after: LOG_START, rows: Number.MAX_SAFE_INTEGER };
    return this.#database.read((sql) => readPage(sql, kind, all));
  }

  /** Compare-and-set on uid and revision. */
  #change<K extends Kind>(
    kind: K,
    seen: Stored<K>,
    next: (there: Records[K]) => Records[K],
  ): Promise<ReplaceResult<K>> {
    return this.#write((sql) => {
      const row = readSeen(sql, kind, seen);
      if (row === undefined) return { kind: "conflict" };
      const there = storedOf(kind, row);
      const body = encodeRecord(kind, next(there.record), there);
      const written = { key: there.key, uid: there.uid, createdAt: there.createdAt, body };
      return { kind: "replaced", stored: storedOf(kind, this.#put(sql, kind, written)) };
    });
  }

  #put(sql: Sql, kind: Kind, written: Written): Row {
    this.#database.noteChange();
    return put(sql, kind, written, this.#kept);
  }

  #write<T>(work: Work<T>): Promise<T> {
    mustBeOpen(this.#closing);
    return this.#database.write(work);
  }
}

function mustKeepKey<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): void {
  const key = keyOf(kind, next);
  if (key !== seen.key) throw new BerthError("INTERNAL", `${kind} ${seen.key} cannot become ${key}`);
}

/** The row that is stored, if it is exactly what was seen. */
function readSeen(sql: Sql, kind: Kind, seen: Stored<Kind>): Row | undefined {
  const row = readOne(sql, kind, seen.key);
  return row?.["uid"] === seen.uid && String(row["revision"]) === seen.revision ? row : undefined;
}

/** Records of rows that were read, with a turn for others now and then. */
async function* decoded<K extends Kind>(kind: K, rows: readonly Row[]): AsyncGenerator<Stored<K>> {
  for (const [i, row] of rows.entries()) {
    yield storedOf(kind, row);
    if ((i + 1) % CHUNK === 0) await nextTurn();
  }
}
