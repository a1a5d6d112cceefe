// SPDX-License-Identifier: Apache-2.0
// Stores in files of a test.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
// biome-ignore lint/style/noRestrictedImports: for a program that does what Berth does not
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { createClock } from "../../../system/clock.ts";
import { createRandom } from "../../../system/random.ts";
import { BerthError, type FaultCode } from "../../base/errors.ts";
import { noopLogger } from "../../base/ports.ts";
import { type Database, type DatabaseOptions, openDatabase } from "../sqlite/database.ts";
import { openSqliteStore, type SqliteStoreDeps } from "../sqlite/store.ts";
import type { Store } from "../store.ts";

/** This host's, and nothing is logged. */
export const DEPS: SqliteStoreDeps = { clock: createClock(), random: createRandom(), log: noopLogger };

/** Whoever makes it removes it. */
export function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "berth-sqlite-"));
}

/** In a folder that goes when the test is over. */
export function fileIn(t: TestContext): string {
  const folder = newFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "berth.db");
}

interface Options extends DatabaseOptions, Partial<SqliteStoreDeps> {}

/** Both are closed when the test is over. */
export function open(
  t: TestContext,
  path: string,
  options: Options = {},
): { database: Database; store: Store } {
  const database = openDatabase(path, options);
  const store = openSqliteStore(database, { ...DEPS, ...options });
  t.after(async () => {
    await store.close();
    database.close();
  });
  return { database, store };
}

/** A program beside Berth that does to the file what Berth would not. */
export function meddle(t: TestContext, path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 20 });
  t.after(() => db.close());
  return db;
}

/** Matches a BerthError by its code and message. */
export function fault(code: FaultCode, message: string | RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof BerthError, String(error));
    assert.equal(error.code, code);
    if (typeof message === "string") assert.equal(error.message, message);
    else assert.match(error.message, message);
    return true;
  };
}
