// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import { type Database, openDatabase } from "../../allocator/store/sqlite/database.ts";
import type { Work } from "../../allocator/store/sqlite/sql.ts";
import { Journal } from "../../ipam-plugin/agent/journal/journal.ts";
import type { Process } from "./process.ts";
import type { Fate } from "./schedule.ts";

const TABLES: readonly string[] = [
  ...["attachments", "positions", "probe", "journal_id", "journal_position", "blocks", "block_pools"],
];

/** Writes into the empty one what the other has at this moment. */
export async function copyOf(from: Database, to: Database): Promise<void> {
  const contents = from.read((sql) =>
    TABLES.map((table) => ({ table, rows: sql.all(`SELECT * FROM ${table}`) })),
  );
  await to.write((sql) => {
    for (const { table, rows } of contents) {
      for (const row of rows) {
        const columns = Object.keys(row);
        const places = columns.map(() => "?").join(", ");
        sql.run(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${places})`, ...Object.values(row));
      }
    }
  });
}

/** Databases in memory that outlive the processes of a run, and are wiped for the next one: opening one costs more. */
export class Disks {
  readonly #free: Database[] = [];
  readonly #all: Database[] = [];

  take(): Database {
    const wiped = this.#free.pop();
    if (wiped !== undefined) return wiped;
    const database = openDatabase(":memory:");
    new Journal(database); // makes the tables
    this.#all.push(database);
    return database;
  }

  async giveBack(database: Database): Promise<void> {
    await database.write((sql) => {
      for (const table of TABLES) sql.run(`DELETE FROM ${table}`);
    });
    this.#free.push(database);
  }

  close(): void {
    for (const database of this.#all) database.close();
  }
}

/** `lost`: the disk is full. */
const DISK_FATES: readonly Fate[] = ["lost", "slow", "diesBefore", "diesAfter"];

/** The database as one process has it: a commit takes its time, fails, or is the last thing that the process did. */
export function diskOf(database: Database, process: Process): Database {
  const write = <T>(work: Work<T>) => writeOf(database, process, work);
  return new Proxy(database, {
    get(target, property) {
      if (property === "write") return write;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function writeOf<T>(database: Database, process: Process, work: Work<T>): Promise<T> {
  const { schedule } = process.post;
  return new Promise((resolve, reject) => {
    const run = (fate: Fate) => {
      if (fate === "lost") {
        reject(new BerthError("STORE_FULL", "the disk is full"));
        return "DISK FULL";
      }
      if (fate === "diesBefore") {
        process.post.crash();
        return "CRASHES before the commit";
      }
      const written = schedule.busy(database.write(work));
      written.catch(() => {}); // who hears of it later, or has died, has not asked yet
      if (fate === "diesAfter") process.post.crash();
      if (fate === "slow") {
        process.offer({ what: () => "hears of its commit", run: () => settle(written, resolve, reject) });
      } else settle(written, resolve, reject);
      return fate === "diesAfter" ? "committed, and CRASHES" : "committed";
    };
    process.offer({ what: () => "commit", run, fates: DISK_FATES });
  });
}

function settle<T>(
  written: Promise<T>,
  resolve: (result: T) => void,
  reject: (error: unknown) => void,
): string {
  written.then(resolve, reject);
  return "";
}
