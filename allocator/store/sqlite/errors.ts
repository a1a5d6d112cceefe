// SPDX-License-Identifier: Apache-2.0
import { BerthError, type FaultCode, messageOf } from "../../base/errors.ts";

/** The primary result codes (https://sqlite.org/rescode.html) that something can be done about -> our code. */
const CODES: ReadonlyMap<number, FaultCode> = new Map([
  [5, "TIMED_OUT"], // BUSY
  [6, "TIMED_OUT"], // LOCKED
  [7, "STORE_UNAVAILABLE"], // NOMEM
  [8, "STORE_READ_ONLY"], // READONLY
  [10, "STORE_UNAVAILABLE"], // IOERR
  [11, "STATE_CORRUPT"], // CORRUPT
  [13, "STORE_FULL"], // FULL
  [14, "STORE_UNAVAILABLE"], // CANTOPEN
  [15, "TIMED_OUT"], // PROTOCOL: lost the race for the WAL's locks too often
  [26, "STATE_CORRUPT"], // NOTADB
]);

/** IOERR_SHMSIZE: there is no room for the -shm, which whoever opens the file first makes beside it. */
const NO_ROOM_FOR_SHM = 4874;

/** `errcode` of what node:sqlite throws; the extended codes keep the primary one in their low byte. */
function codeOf(error: unknown): FaultCode | "other" | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number")
    return undefined;
  return error.errcode === NO_ROOM_FOR_SHM ? "STORE_FULL" : (CODES.get(error.errcode & 0xff) ?? "other");
}

function wordsOf(code: FaultCode, path: string, said: string): string {
  switch (code) {
    case "TIMED_OUT":
      return `${path} stayed locked by another process; end the berthctl or sqlite3 that holds it and try again`;
    case "STORE_READ_ONLY":
      return `${path} cannot be written; check its owner and mode, and how its file system is mounted`;
    case "STORE_FULL":
      return `the disk under ${path} is full; free some space on it, what was stored before is intact`;
    case "STATE_CORRUPT":
      return damaged(path, said);
    default:
      return `${path} cannot be used (${said}); check that its folder exists and that its disk works`;
  }
}

/** What to say of a damaged file: it names the way back, because nobody may start over with an empty one. */
export function damaged(path: string, said: string): string {
  return `${path} is damaged (${said}); stop Berth, move it away together with its -wal and -shm, and put a backup in its place (sqlite3's .recover saves what can still be read)`;
}

/** Gives what SQLite threw its code and words; anything else comes back as it is. */
export function faultOf(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (code === undefined) return error;
  if (code === "other") {
    return new BerthError("INTERNAL", `SQLite refused a statement: ${messageOf(error)}`, { cause: error });
  }
  return new BerthError(code, wordsOf(code, path, messageOf(error)), { details: { path }, cause: error });
}

/** The same for errors of the file system, while the file is made. */
export function fileFaultOf(error: unknown, path: string): BerthError {
  const errno = error instanceof Error && "code" in error ? error.code : undefined;
  const full = errno === "ENOSPC" || errno === "EDQUOT";
  const denied = errno === "EROFS" || errno === "EACCES" || errno === "EPERM";
  const code = full ? "STORE_FULL" : denied ? "STORE_READ_ONLY" : "STORE_UNAVAILABLE";
  return new BerthError(code, wordsOf(code, path, messageOf(error)), { details: { path }, cause: error });
}
