// SPDX-License-Identifier: Apache-2.0
import { decodeRecord } from "../codec.ts";
import type { Kind, Stored } from "../store.ts";
import { integerOf, type Reader, type Row, type Sql, textColumn } from "./sql.ts";

/**
 * The tables. `changes` is the log of all kinds: its rowid is the revision of the write, and AUTOINCREMENT never
 * gives one twice, not even when the newest rows are deleted. A change without a body is a deletion.
 */
export const STEPS: readonly string[] = [
  `CREATE TABLE records (
     kind TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL, revision INTEGER NOT NULL,
     created_at INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, key)) STRICT, WITHOUT ROWID`,
  `CREATE TABLE changes (
     revision INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL,
     created_at INTEGER NOT NULL, body TEXT) STRICT`,
];

/** A record as text: what is common to a row of `records` and one of `changes`. */
export interface Written {
  readonly key: string;
  readonly uid: string;
  readonly createdAt: number;
  readonly body: string;
}

/** Rows between two turns of the event loop: some 20 µs for each to be read, decoded and taken, so 2 ms. */
export const CHUNK = 100;
/** How often the log is cut, in revisions: each time takes that many rows off its end. */
const CUT_EVERY = 256;
/** Sorts before every key. */
export const LOG_START = "";

const ONE = "SELECT key, uid, revision, created_at, body FROM records WHERE kind = ? AND key = ?";
const PAGE =
  "SELECT key, uid, revision, created_at, body FROM records WHERE kind = ? AND key > ? ORDER BY key LIMIT ?";
const PUT =
  "INSERT OR REPLACE INTO records (kind, key, uid, revision, created_at, body) VALUES (?, ?, ?, ?, ?, ?)";
const DELETE = "DELETE FROM records WHERE kind = ? AND key = ?";
const LOG = "INSERT INTO changes (kind, key, uid, created_at, body) VALUES (?, ?, ?, ?, ?)";
const CUT = "DELETE FROM changes WHERE revision <= ?";
const NEWEST = "SELECT coalesce(max(revision), 0) AS newest FROM changes";
/** The limit is written out: as a value it would have the statement prepared again each time (SQLite's planner looks at it). */
const CHANGES = `SELECT revision, kind, key, uid, created_at, body FROM changes WHERE revision > ? ORDER BY revision LIMIT ${CHUNK}`;

/** The record in a row. Throws STATE_CORRUPT, naming the key. */
export function storedOf<K extends Kind>(kind: K, row: Row): Stored<K> {
  const key = textColumn(row, "key");
  return {
    key,
    ...decodeRecord(kind, key, textColumn(row, "body")),
    uid: textColumn(row, "uid"),
    revision: String(integerOf(row, "revision")),
    createdAt: integerOf(row, "created_at"),
  };
}

export function readOne(sql: Reader, kind: Kind, key: string): Row | undefined {
  return sql.get(ONE, kind, key);
}

/** The next rows after a key, in the order of keys. */
export function readPage(sql: Reader, kind: Kind, page: { after: string; rows: number }): readonly Row[] {
  return sql.all(PAGE, kind, page.after, page.rows);
}

/** Writes a record and its change, cuts the log, and answers with the row that is there now. */
export function put(sql: Sql, kind: Kind, written: Written, kept: number): Row {
  const { key, uid, createdAt, body } = written;
  const revision = sql.run(LOG, kind, key, uid, createdAt, body).rowid;
  sql.run(PUT, kind, key, uid, revision, createdAt, body);
  cut(sql, revision, kept);
  return { key, uid, revision, created_at: createdAt, body };
}

/** Deletes a record and logs that. */
export function drop(sql: Sql, kind: Kind, row: Row, kept: number): void {
  const key = textColumn(row, "key");
  const revision = sql.run(LOG, kind, key, textColumn(row, "uid"), integerOf(row, "created_at"), null).rowid;
  sql.run(DELETE, kind, key);
  cut(sql, revision, kept);
}

function cut(sql: Sql, revision: number, kept: number): void {
  if (revision % CUT_EVERY === 0) sql.run(CUT, revision - kept);
}

/** The last revision that the log has, 0 for an empty one. */
export function newestRevision(sql: Reader): number {
  return integerOf(sql.get(NEWEST), "newest");
}

/** Changes of all kinds, the next CHUNK at most after a revision, in their order. None is missing between two of them. */
export function readChanges(sql: Reader, after: number): readonly Row[] {
  return sql.all(CHANGES, after);
}
