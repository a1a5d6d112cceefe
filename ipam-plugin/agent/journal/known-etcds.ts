// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import type { Database } from "../../../allocator/store/sqlite/database.ts";
import { type Row, textColumn } from "../../../allocator/store/sqlite/sql.ts";

/** An etcd that a network's configuration named, kept as long as attachments may need it. */
interface KnownEtcd<Access> {
  /** Before the names of its claims in the journal. */
  readonly name: string;
  /** As it called itself when it was reached last by this access. */
  readonly cluster: string;
  readonly access: Access;
}

/** Apart from the journal's other tables: a version that does not know of it reads those all the same. */
const STEPS: readonly string[] = [
  "CREATE TABLE etcds (name TEXT PRIMARY KEY, cluster TEXT NOT NULL, access TEXT NOT NULL) STRICT, WITHOUT ROWID",
];
const PUT = "INSERT OR REPLACE INTO etcds (name, cluster, access) VALUES (?, ?, ?)";

/** How the etcds of attachments are reached: a DEL brings no configuration that could be relied on. */
export class KnownEtcds<Access> {
  readonly #database: Database;

  /** Brings the table up to date. Throws BerthError of the database. */
  constructor(database: Database) {
    this.#database = database;
    database.migrate("journal etcds", STEPS);
  }

  /** Throws STATE_CORRUPT for a row that does not decode. */
  all(): readonly KnownEtcd<Access>[] {
    return this.#database.read((sql) => sql.all("SELECT * FROM etcds").map((row) => decode<Access>(row)));
  }

  /** On the disk when this resolves. */
  async put({ name, cluster, access }: KnownEtcd<Access>): Promise<void> {
    await this.#database.write((sql) => sql.run(PUT, name, cluster, JSON.stringify(access)));
  }

  async remove(name: string): Promise<void> {
    await this.#database.write((sql) => sql.run("DELETE FROM etcds WHERE name = ?", name));
  }
}

/** Written by this file alone. */
function decode<Access>(row: Row): KnownEtcd<Access> {
  const name = textColumn(row, "name");
  try {
    const access = JSON.parse(textColumn(row, "access")) as Access;
    return { name, cluster: textColumn(row, "cluster"), access };
  } catch (error) {
    const words = `the journal's access of ${name} cannot be read (${messageOf(error)}); restore it from a backup`;
    throw new BerthError("STATE_CORRUPT", words, { cause: error });
  }
}
