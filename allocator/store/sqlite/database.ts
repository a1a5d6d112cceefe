// SPDX-License-Identifier: Apache-2.0
import { resolve } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { BerthError } from "../../base/errors.ts";
import { type Clock, type Logger, type Metrics, noopLogger } from "../../base/ports.ts";
import { faultOf } from "./errors.ts";
import {
  addressToRead,
  createFile,
  fillDraft,
  inspect,
  inspectFile,
  inspectLog,
  makeDurable,
  mustBeWritable,
} from "./file.ts";
import { GroupCommit } from "./group-commit.ts";
import { notUpToDate, type Part, partsBehind, takeSteps } from "./migration.ts";
import { OpenFiles, requireFiles, requireOwnFiles } from "./own-file.ts";
import {
  atomically,
  integerOf,
  type Reader,
  type Row,
  rollBack,
  type Transactional,
  type Value,
  type Work,
} from "./sql.ts";

const IN_MEMORY = ":memory:";
const BUSY_MS = 5_000;
const SLOW_COMMIT_MS = 1_000;

export interface DatabaseOptions {
  readonly readOnly?: boolean;
  /** With both, commits slower than a second are logged: the disk is not good enough. */
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Where commits are timed, by the clock. */
  readonly metrics?: Metrics;
  /** How long a write waits for another process's, 5 s if absent. It holds the event loop meanwhile. */
  readonly busyMs?: number;
  /** Called once in each batch of writes, just before COMMIT. The place where tests count commits or fail one. */
  readonly beforeCommit?: () => void;
}

/** A second connection that sees the file as it was when the snapshot was taken. Close it soon: the WAL grows. */
export interface Snapshot extends Reader {
  close(): void;
}

/** One connection with its prepared statements. Every error of SQLite is translated here. */
class Connection implements Transactional {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #statements = new Map<string, StatementSync>(); // SQL -> prepared

  constructor(path: string, options: { readOnly: boolean; busyMs: number }) {
    this.#path = path;
    this.#db = this.#call(
      () =>
        new DatabaseSync(options.readOnly ? addressToRead(path) : path, {
          readOnly: options.readOnly,
          timeout: options.busyMs,
          enableForeignKeyConstraints: false,
        }),
    );
  }

  get inTransaction(): boolean {
    return this.#db.isTransaction;
  }

  get(sql: string, ...values: readonly Value[]): Row | undefined {
    return this.#call(() => this.#prepare(sql).get(...values));
  }

  all(sql: string, ...values: readonly Value[]): readonly Row[] {
    return this.#call(() => this.#prepare(sql).all(...values));
  }

  run(sql: string, ...values: readonly Value[]): { changes: number; rowid: number } {
    const { changes, lastInsertRowid } = this.#call(() => this.#prepare(sql).run(...values));
    return { changes: Number(changes), rowid: Number(lastInsertRowid) };
  }

  close(): void {
    this.#statements.clear();
    if (this.#db.isOpen) this.#call(() => this.#db.close());
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #call<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw faultOf(error, this.#path);
    }
  }
}

/**
 * Opens a file, making it if it does not exist, or memory (`:memory:`); durable with a write-ahead log, an fsync in
 * each commit. Throws CONFIG_INVALID for a file of another program or of a newer Berth, STATE_CORRUPT for a damaged one.
 */
export function openDatabase(path: string, options: DatabaseOptions = {}): Database {
  const absolute = path === IN_MEMORY ? path : resolve(path);
  if (path !== IN_MEMORY && options.readOnly !== true) {
    createFile(absolute, makeFile);
    mustBeWritable(absolute);
    requireOwnFiles(absolute, options.log ?? noopLogger);
    inspectLog(absolute);
  } else if (path !== IN_MEMORY) requireFiles(absolute);
  const connection = connect(absolute, options);
  try {
    connection.run("PRAGMA trusted_schema = OFF");
    if (path === IN_MEMORY) inspectFile(connection);
    else inspect(connection, absolute, options.log ?? noopLogger);
    if (path !== IN_MEMORY && options.readOnly !== true) makeDurable(connection, absolute);
  } catch (error) {
    connection.close();
    throw error;
  }
  return new Database(absolute, connection, options);
}

function connect(path: string, options: DatabaseOptions): Connection {
  return new Connection(path, { readOnly: options.readOnly === true, busyMs: options.busyMs ?? BUSY_MS });
}

function makeFile(path: string): void {
  const connection = connect(path, {});
  try {
    fillDraft(connection, path);
  } finally {
    connection.close();
  }
}

/**
 * A SQLite file, or memory. Reads are synchronous; writes are queued and share commits, and are durable when their
 * promise resolves. Throws BerthError TIMED_OUT, STORE_FULL, STORE_READ_ONLY, STORE_UNAVAILABLE or STATE_CORRUPT.
 */
export class Database {
  /** Absolute; `:memory:` for memory. */
  readonly path: string;
  /** Nobody else can see it, and a snapshot cannot be had. */
  readonly inMemory: boolean;
  readonly #connection: Connection;
  readonly #options: DatabaseOptions;
  readonly #writes: GroupCommit;
  readonly #files: OpenFiles | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #snapshots = new Set<() => void>(); // ways to close those that are open
  #commitBegan = 0;
  #changes = 0;
  #closed = false;

  /** @internal Use openDatabase: the connection must have been checked. */
  constructor(path: string, connection: Connection, options: DatabaseOptions) {
    this.path = path;
    this.inMemory = path === IN_MEMORY;
    this.#connection = connection;
    this.#options = options;
    this.#files = this.inMemory ? undefined : new OpenFiles(path);
    this.#writes = new GroupCommit(connection, {
      beforeCommit: () => this.#beforeCommit(),
      afterCommit: () => this.#afterCommit(),
    });
  }

  /** Runs `work` in the next transaction. If it throws, what it wrote is undone and its neighbours are not harmed. */
  async write<T>(work: Work<T>): Promise<T> {
    this.#mustServe();
    if (this.#options.readOnly === true) {
      throw new BerthError("STORE_READ_ONLY", `${this.path} was opened for reading only`);
    }
    return this.#writes.add(work);
  }

  /** Runs `work` at once, on what is committed; everything that it reads is of one moment. */
  read<T>(work: (sql: Reader) => T): T {
    this.#mustServe();
    if (this.#connection.inTransaction) return work(this.#connection);
    this.#connection.run("BEGIN");
    try {
      return work(this.#connection);
    } finally {
      rollBack(this.#connection);
    }
  }

  /** As `read`, for work of one statement: that is of one moment without a transaction around it, and takes half the time. */
  readOnce<T>(work: (sql: Reader) => T): T {
    this.#mustServe();
    return work(this.#connection);
  }

  /** What is committed now, to be read at leisure; undefined for memory, which has a single connection. */
  snapshot(): Snapshot | undefined {
    this.#mustServe();
    if (this.inMemory) return undefined;
    const connection = connect(this.path, { ...this.#options, readOnly: true });
    const close = () => {
      this.#snapshots.delete(close);
      connection.close();
    };
    this.#snapshots.add(close);
    try {
      connection.run("BEGIN");
      connection.get("SELECT count(*) FROM sqlite_schema"); // the moment is that of the first read
    } catch (error) {
      close();
      throw error;
    }
    return {
      get: (sql, ...values) => connection.get(sql, ...values),
      all: (sql, ...values) => connection.all(sql, ...values),
      close,
    };
  }

  /** Changes whenever another connection, of this process or another, has committed. */
  dataVersion(): number {
    this.#mustServe();
    return integerOf(this.#connection.get("PRAGMA data_version"), "data_version");
  }

  /** To be called in a work that writes what somebody follows. */
  noteChange(): void {
    this.#changes++;
  }

  /** While it stays the same, no work of this object has committed what somebody follows; one that was undone counts, too. */
  get changes(): number {
    return this.#changes;
  }

  /** Calls `listener` after each commit of this object; returns the way to stop that. */
  onCommit(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Brings the tables of one part up to date: see migrateAll. */
  migrate(name: string, steps: readonly string[], lock?: number): void {
    this.migrateAll([{ name, steps, ...(lock === undefined ? {} : { lock }) }]);
  }

  /**
   * Brings the tables of these parts up to date, at once and in one transaction: the disk is waited for once. CONFIG_INVALID:
   * the file has taken more steps of one of them.
   */
  migrateAll(parts: readonly Part[]): void {
    const behind = this.read((sql) => partsBehind(sql, this.path, parts));
    if (behind.length === 0) return;
    if (this.#options.readOnly === true) throw notUpToDate(this.path, behind);
    atomically(this.#connection, (sql) => takeSteps(sql, behind));
  }

  /** Commits what is queued and closes. Safe to repeat; everything else throws STORE_UNAVAILABLE from then on. */
  close(): void {
    if (this.#closed) return;
    this.#writes.flush();
    this.#closed = true;
    for (const closeSnapshot of [...this.#snapshots]) closeSnapshot();
    this.#connection.close();
  }

  #beforeCommit(): void {
    this.#files?.requireInPlace();
    this.#options.beforeCommit?.();
    this.#commitBegan = this.#options.clock?.monotonic() ?? 0;
  }

  #afterCommit(): void {
    const ms = (this.#options.clock?.monotonic() ?? 0) - this.#commitBegan;
    this.#options.metrics?.observe("berth_journal_commit_duration_seconds", ms / 1000);
    if (ms > SLOW_COMMIT_MS) this.#options.log?.warn("store took long to commit", { ms });
    for (const listener of [...this.#listeners]) listener();
  }

  #mustServe(): void {
    if (this.#closed) throw new BerthError("STORE_UNAVAILABLE", `${this.path} is closed`);
  }
}
