// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../base/errors.ts";

/** What SQLite stores and gives back. */
export type Value = null | number | bigint | string | Uint8Array;
export type Row = Readonly<Record<string, Value>>;

/** SQL that only looks; one statement in each call. Throws BerthError with the code of what went wrong. */
export interface Reader {
  get(sql: string, ...values: readonly Value[]): Row | undefined;
  all(sql: string, ...values: readonly Value[]): readonly Row[];
}

/** SQL inside a write transaction. */
export interface Sql extends Reader {
  /** `rowid` of the row put in last, when the statement put one in. */
  run(sql: string, ...values: readonly Value[]): { readonly changes: number; readonly rowid: number };
}

/** A connection that can hold a transaction open. SQLite ends one by itself on some errors, a full disk for one. */
export interface Transactional extends Sql {
  readonly inTransaction: boolean;
}

/** Must be synchronous: the transaction is over when it returns. */
export type Work<T> = (sql: Sql) => T;

/** Ends the transaction, if SQLite has not done so, with nothing kept. */
export function rollBack(connection: Transactional): void {
  if (connection.inTransaction) connection.run("ROLLBACK");
}

/** Runs `work` in a write transaction of its own, all or nothing. */
export function atomically<T>(connection: Transactional, work: Work<T>): T {
  connection.run("BEGIN IMMEDIATE");
  try {
    const answer = work(connection);
    connection.run("COMMIT");
    return answer;
  } catch (error) {
    rollBack(connection);
    throw error;
  }
}

/** The text in a column; STATE_CORRUPT when there is none. */
export function textColumn(row: Row | undefined, column: string): string {
  const value = row?.[column];
  if (typeof value === "string") return value;
  throw new BerthError("STATE_CORRUPT", `column ${column} of a stored row holds no text`);
}

/** The integer in a column; STATE_CORRUPT when there is none. */
export function integerOf(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw new BerthError("STATE_CORRUPT", `column ${column} of a stored row holds no whole number`);
}
