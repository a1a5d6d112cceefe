// SPDX-License-Identifier: Apache-2.0
// A database of notes, and what it throws.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { BerthError, type FaultCode } from "../../base/errors.ts";
import { type Database, type DatabaseOptions, openDatabase } from "../sqlite/database.ts";

/** The schema. */
export const NOTES = ["CREATE TABLE notes (id INTEGER PRIMARY KEY, words TEXT NOT NULL) STRICT"];

/** A new folder that goes when the test is over. */
export function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "berth-database-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A database with the table of the notes, that is closed when the test is over. */
export function open(t: TestContext, path: string, options: DatabaseOptions = {}): Database {
  const database = openDatabase(path, options);
  t.after(() => database.close());
  if (options.readOnly !== true) database.migrate("notes", NOTES);
  return database;
}

/** Gives the row. */
export function note(database: Database, words: string): Promise<number> {
  return database.write((sql) => sql.run("INSERT INTO notes (words) VALUES (?)", words).rowid);
}

/** Their words, the oldest first. */
export function notes(database: Database): unknown[] {
  return database.read((sql) => sql.all("SELECT words FROM notes ORDER BY id").map((row) => row["words"]));
}

/** Matches a BerthError by its code and whole message. */
export function fault(code: FaultCode, message: string): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof BerthError, String(error));
    assert.deepEqual([error.code, error.message], [code, message]);
    return true;
  };
}

/** Matches a BerthError by its code alone. */
export function coded(code: FaultCode): (error: unknown) => boolean {
  return (error) => error instanceof BerthError && error.code === code;
}
