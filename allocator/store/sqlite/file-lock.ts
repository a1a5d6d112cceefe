// SPDX-License-Identifier: Apache-2.0
import { closeSync, existsSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { BerthError } from "../../base/errors.ts";
import { faultOf } from "./errors.ts";

/**
 * Locks a file that is for nothing else, until what it gives is called or this process ends, be it by kill -9: the kernel keeps the lock, and
 * sees also who is in another container. The file stays empty, and stays: whoever deleted it would let two have it. Undefined: somebody
 * has it. Throws BerthError where it cannot be made.
 */
export function lockFile(path: string): (() => void) | undefined {
  let database: DatabaseSync | undefined;
  try {
    // SQLite lets others read it, and to close a file that this process has locked would end the lock
    if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
    database = new DatabaseSync(path, { timeout: 0 });
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database?.close();
    const fault = faultOf(error, path);
    if (fault instanceof BerthError && fault.code === "TIMED_OUT") return undefined;
    throw fault;
  }
  return () => database.close();
}
