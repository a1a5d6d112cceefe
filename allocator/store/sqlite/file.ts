// SPDX-License-Identifier: Apache-2.0
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { BerthError } from "../../base/errors.ts";
import type { Logger } from "../../base/ports.ts";
import { damaged, fileFaultOf } from "./errors.ts";
import { DRAFT, draftsBegin } from "./own-file.ts";
import { atomically, integerOf, type Reader, type Transactional, textColumn } from "./sql.ts";
import { isDamaged } from "./wal-check.ts";

/** "Brth": what file(1) and `PRAGMA application_id` tell Berth's files by. */
const APPLICATION_ID = 0x42727468;
/** Of the file as a whole, in `user_version`; the tables of each part have versions of their own (Database.migrate). */
const FORMAT = 1;
/** quick_check reads the whole file: some 0.5 ms per MiB that the kernel has in memory, so 0.15 s at most. */
const MOST_CHECKED_BYTES = 256 * 1024 * 1024;
const WAL_HEADER_BYTES = 32;
/** After a burst of writes the -wal is cut back to this. */
const WAL_BYTES = 16 * 1024 * 1024;

/**
 * Makes the file, 0600, and its folder, 0700, where they do not exist yet. `make` fills it under another name, so
 * that whoever opens it, in whatever process, finds it whole or not at all. What `make` writes need not be on the disk yet.
 */
export function createFile(path: string, make: (draft: string) => void): void {
  if (existsSync(path)) return;
  let isNamed = false;
  try {
    const folder = dirname(path);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const draftFolder = mkdtempSync(draftsBegin(path));
    try {
      const draft = join(draftFolder, DRAFT);
      closeSync(openSync(draft, "wx", 0o600));
      make(draft);
      sync(draft);
      linkSync(draft, path);
      isNamed = true;
      sync(folder);
    } finally {
      rmSync(draftFolder, { recursive: true, force: true });
    }
  } catch (error) {
    // another process was faster, and may have taken the draft away
    if (!isNamed && existsSync(path)) return;
    throw error instanceof BerthError ? error : fileFaultOf(error, path);
  }
}

/** Of a folder too: the name of a new file survives a power cut only once its folder is on the disk. */
function sync(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Makes an empty database Berth's. */
export function inspectFile(connection: Transactional): void {
  atomically(connection, (sql) => {
    sql.run(`PRAGMA application_id = ${APPLICATION_ID}`);
    sql.run(`PRAGMA user_version = ${FORMAT}`);
    sql.run("CREATE TABLE schemas (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID");
  });
}

/**
 * Makes sure that a file is Berth's, of a format that is known here, and whole.
 * CONFIG_INVALID: another program's or a newer Berth's. STATE_CORRUPT: damaged.
 */
export function inspect(sql: Reader, path: string, log: Logger): void {
  const owner = integerOf(sql.get("PRAGMA application_id"), "application_id");
  const format = integerOf(sql.get("PRAGMA user_version"), "user_version");
  if (owner !== APPLICATION_ID) throw notOurs(path, sql);
  if (format > FORMAT) throw isNewerFormat(path, `format ${format}, this one reads ${FORMAT}`);
  examine(sql, path, log);
}

function examine(sql: Reader, path: string, log: Logger): void {
  const pages = integerOf(sql.get("PRAGMA page_count"), "page_count");
  const bytes = pages * integerOf(sql.get("PRAGMA page_size"), "page_size");
  if (bytes > MOST_CHECKED_BYTES) {
    log.info("store is too large to be checked for damage each time it is opened", { bytes });
    return;
  }
  const verdict = textColumn(sql.get("PRAGMA quick_check(1)"), "quick_check");
  if (verdict !== "ok") {
    throw new BerthError("STATE_CORRUPT", damaged(path, verdict), { details: { path } });
  }
}

/** SQLite says of a file system that is mounted read-only that it cannot open the file, where there is no -wal. */
export function mustBeWritable(path: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw fileFaultOf(error, path);
  }
}

/**
 * Where SQLite finds a file that is only read. One with a write-ahead log wants files beside it; on a file system that is mounted
 * read-only they cannot be made, and nobody writes either, so that it may be taken as it is. The log itself stays to be read.
 */
export function addressToRead(path: string): string | URL {
  if (existsSync(`${path}-wal`) || !isOnReadOnlyMount(path)) return path;
  const address = pathToFileURL(path);
  address.search = "immutable=1";
  return address;
}

function isOnReadOnlyMount(path: string): boolean {
  try {
    accessSync(dirname(path), constants.W_OK);
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EROFS";
  }
}

/** Looks at the -wal before SQLite reads it and drops what is behind a damage. Throws STATE_CORRUPT. */
export function inspectLog(path: string): void {
  const log = readLog(`${path}-wal`);
  if (log === undefined || !isDamaged(log)) return;
  const said = "its -wal has lost commits that were safe on the disk";
  throw new BerthError("STATE_CORRUPT", damaged(path, said), { details: { path } });
}

/** Undefined when there is none to judge, or when a process at work has begun it anew meanwhile. */
function readLog(path: string): Buffer | undefined {
  try {
    const handle = openSync(path, "r");
    try {
      if (fstatSync(handle).size > MOST_CHECKED_BYTES) return undefined;
      const log = readFileSync(handle);
      const header = Buffer.alloc(Math.min(log.length, WAL_HEADER_BYTES));
      readSync(handle, header, 0, header.length, 0);
      return header.equals(log.subarray(0, header.length)) ? log : undefined;
    } finally {
      closeSync(handle);
    }
  } catch {
    return undefined; // what keeps it from being read, SQLite says better
  }
}

/** Settings of a connection that writes: each commit is on the disk when it returns. */
export function makeDurable(connection: Transactional, path: string): void {
  useLog(connection, path);
  connection.run("PRAGMA synchronous = FULL");
  connection.run(`PRAGMA journal_size_limit = ${WAL_BYTES}`);
}

/** Fills an empty file that nobody can see yet, without waiting for the disk: each step would be waited for on its own. */
export function fillDraft(connection: Transactional, path: string): void {
  connection.run("PRAGMA synchronous = OFF");
  useLog(connection, path);
  inspectFile(connection);
  // to close it would do so too, but says nothing where the disk is full: what is left in its log has no name
  connection.get("PRAGMA wal_checkpoint(TRUNCATE)");
}

function useLog(connection: Transactional, path: string): void {
  const mode = textColumn(connection.get("PRAGMA journal_mode = WAL"), "journal_mode");
  if (mode !== "wal") {
    const words = `${path} cannot have a write-ahead log; put it on a local file system`;
    throw new BerthError("STORE_UNAVAILABLE", words, { details: { path } });
  }
}

/** What to say of a file that a newer Berth wrote. */
export function isNewerFormat(path: string, versions: string): BerthError {
  const words = `${path} was written by a newer Berth (${versions}); upgrade this one, or give it another file`;
  return new BerthError("CONFIG_INVALID", words, { details: { path } });
}

/** An empty file is refused too: it may be what is left of a store, and to start over would give addresses twice. */
function notOurs(path: string, sql: Reader): BerthError {
  const empty = integerOf(sql.get("PRAGMA page_count"), "page_count") === 0;
  const words = empty
    ? `${path} is empty; put a backup in its place, or delete it if it never was a store of Berth`
    : `${path} belongs to another program; give Berth another path`;
  return new BerthError("CONFIG_INVALID", words, { details: { path } });
}
