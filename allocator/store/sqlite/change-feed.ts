// SPDX-License-Identifier: Apache-2.0
import { setImmediate as nextTurn } from "node:timers/promises";
import { BerthError, messageOf } from "../../base/errors.ts";
import type { Clock, Logger } from "../../base/ports.ts";
import type { Change, Kind } from "../store.ts";
import type { Database } from "./database.ts";
import { CHUNK, LOG_START, newestRevision, readChanges, readPage, storedOf } from "./rows.ts";
import { integerOf, type Row, textColumn } from "./sql.ts";

/** How soon a watcher sees what another process wrote. */
const POLL_MS = 200;
/** After a read that failed. */
const RETRY_MS = 1_000;

/** What was read of the log last: after which revision, and when. */
interface LastRead {
  readonly after: number;
  /** Of the feed's wakes: whoever is woken later reads again. */
  readonly wakes: number;
  readonly rows: readonly Row[];
}

/** How far a watcher was told. */
interface Cursor {
  /** Every change up to this revision; undefined: nothing, or it fell behind the log. */
  at: number | undefined;
  /** Of the feed's wakes: nothing was left to read when there had been so many. */
  doneAt: number | undefined;
  /** Changes after `at` that the full pass has shown already. */
  readonly shown: Map<string, number>; // key -> revision
}

/** Follows the log of changes. Watchers are woken by commits of this process, and of others by polling. */
export class ChangeFeed {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #sleepers = new Set<() => void>();
  readonly #stopListening: () => void;
  #followers = 0;
  #polling: AbortController | undefined;
  #dataVersion: number;
  #waking = false;
  /** How often watchers were woken: whoever read since the last time has seen what they were woken for. */
  #wakes = 0;
  /** Of the database's count of changes: where watchers were last woken for a commit of this object. */
  #wokenAt: number;
  #lastRead: LastRead | undefined;

  constructor(database: Database, deps: { readonly clock: Clock; readonly log: Logger }) {
    this.#database = database;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#dataVersion = database.dataVersion();
    this.#wokenAt = database.changes;
    this.#stopListening = database.onCommit(() => this.#wakeSoon());
  }

  /** Never ends before `signal` aborts; throws only STATE_CORRUPT, for a record that does not decode. */
  async *follow<K extends Kind>(kind: K, signal: AbortSignal): AsyncGenerator<Change<K>, void, void> {
    const cursor: Cursor = { at: undefined, doneAt: undefined, shown: new Map() };
    this.#arrive();
    try {
      while (!signal.aborted) {
        try {
          if (cursor.at === undefined) yield* this.#pass(kind, cursor, signal);
          else yield* this.#step(kind, cursor, signal);
        } catch (error) {
          if (!(error instanceof BerthError) || error.code === "STATE_CORRUPT") throw error;
          this.#log.warn("watch could not read the store", { code: error.code, error: messageOf(error) });
          await this.#clock.sleep(RETRY_MS, signal);
        }
      }
    } finally {
      this.#leave();
    }
  }

  close(): void {
    this.#stopListening();
  }

  /**
   * Shows every record, page by page of the living table: no transaction stays open, however slow the watcher is.
   * What changes meanwhile comes again from the log, except what a page has shown already.
   */
  async *#pass<K extends Kind>(kind: K, cursor: Cursor, signal: AbortSignal): AsyncGenerator<Change<K>> {
    yield { type: "relist" };
    cursor.shown.clear();
    const start = this.#database.readOnce(newestRevision);
    let after = LOG_START;
    for (;;) {
      const from = { after, rows: CHUNK };
      const page = this.#database.read((sql) => readPage(sql, kind, from));
      for (const row of page) {
        if (signal.aborted) return;
        const revision = integerOf(row, "revision");
        if (revision > start) cursor.shown.set(textColumn(row, "key"), revision);
        yield { type: "put", stored: storedOf(kind, row) };
      }
      const last = page.at(-1);
      if (last === undefined) break;
      after = textColumn(last, "key");
      await nextTurn();
    }
    if (signal.aborted) return;
    yield { type: "synced" };
    cursor.at = start;
  }

  /** Shows the next changes; waits when there are none. */
  async *#step<K extends Kind>(kind: K, cursor: Cursor, signal: AbortSignal): AsyncGenerator<Change<K>> {
    if (cursor.doneAt === this.#wakes) return await this.#sleep(signal);
    const after = cursor.at ?? 0;
    const wakes = this.#wakes;
    const rows = this.#changesAfter(after, wakes);
    const revisions = rows.map((row) => integerOf(row, "revision"));
    if ((revisions[0] ?? 0) > after + 1 || (rows.length === 0 && this.#isOlderThan(after))) {
      this.#log.info("watch fell behind the log of changes and starts over", { kind });
      cursor.at = undefined;
      return;
    }
    for (const row of rows) {
      if (signal.aborted) return;
      if (row["kind"] === kind && !isShown(cursor, row)) yield changeOf(kind, row);
    }
    cursor.at = revisions.at(-1) ?? after;
    if (rows.length < CHUNK) cursor.doneAt = wakes;
    else await nextTurn();
  }

  /** Read once for all watchers that are woken together: they are equally far, as a rule, and most changes are of one kind. */
  #changesAfter(after: number, wakes: number): readonly Row[] {
    if (this.#lastRead?.after !== after || this.#lastRead.wakes !== wakes)
      this.#lastRead = { after, wakes, rows: this.#database.readOnce((sql) => readChanges(sql, after)) };
    return this.#lastRead.rows;
  }

  /** A backup was restored into the file: its next changes have revisions that were told of already. */
  #isOlderThan(after: number): boolean {
    return this.#database.readOnce(newestRevision) < after;
  }

  /** Until something is committed, here or elsewhere. Nothing may be awaited between the look at the wakes and this. */
  #sleep(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#sleepers.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      if (signal.aborted) return resolve();
      this.#sleepers.add(wake);
      signal.addEventListener("abort", wake);
    });
  }

  /** Whoever asked for the commit waits for it, so he goes on first; watchers would read three times before him. */
  #wakeSoon(): void {
    if (this.#waking) return;
    this.#waking = true;
    setImmediate(() => {
      this.#waking = false;
      if (this.#isNew()) this.#wake();
    });
  }

  /** Most commits of a node are its journal's: no watcher needs to look at the log for these. */
  #isNew(): boolean {
    const before = this.#wokenAt;
    this.#wokenAt = this.#database.changes;
    return this.#wokenAt !== before;
  }

  #wake(): void {
    this.#wakes++;
    for (const wake of [...this.#sleepers]) wake();
  }

  #arrive(): void {
    this.#followers++;
    if (this.#polling !== undefined || this.#database.inMemory) return;
    this.#polling = new AbortController();
    void this.#poll(this.#polling.signal);
  }

  #leave(): void {
    this.#followers--;
    if (this.#followers > 0) return;
    this.#polling?.abort();
    this.#polling = undefined;
  }

  /** Notices commits of other connections. Never throws: what is wrong with the file, the watchers find out. */
  async #poll(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#clock.sleep(POLL_MS, signal);
      if (signal.aborted) return;
      if (this.#isChangedElsewhere()) this.#wake();
    }
  }

  #isChangedElsewhere(): boolean {
    try {
      const before = this.#dataVersion;
      this.#dataVersion = this.#database.dataVersion();
      return this.#dataVersion !== before;
    } catch {
      return true;
    }
  }
}

function isShown(cursor: Cursor, row: Row): boolean {
  const key = textColumn(row, "key");
  const shown = cursor.shown.get(key);
  if (shown === undefined) return false;
  const revision = integerOf(row, "revision");
  if (revision >= shown) cursor.shown.delete(key);
  return revision <= shown;
}

function changeOf<K extends Kind>(kind: K, row: Row): Change<K> {
  return row["body"] === null
    ? { type: "gone", key: textColumn(row, "key") }
    : { type: "put", stored: storedOf(kind, row) };
}
