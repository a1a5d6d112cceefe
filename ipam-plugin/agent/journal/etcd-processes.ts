// SPDX-License-Identifier: Apache-2.0
import type { Random } from "../../../allocator/base/ports.ts";
import type { Database } from "../../../allocator/store/sqlite/database.ts";
import { textColumn } from "../../../allocator/store/sqlite/sql.ts";

/** Apart from the journal's other tables: a version that does not know of it reads those all the same. */
const STEPS: readonly string[] = [
  "CREATE TABLE etcd_processes (at INTEGER PRIMARY KEY, id TEXT NOT NULL) STRICT",
];
/** A backup of an etcd is hardly older than so many starts of an agent. */
const MOST = 1_000;
const FORGET = `DELETE FROM etcd_processes WHERE at <= (SELECT max(at) FROM etcd_processes) - ${MOST}`;

/** What an agent is called in etcds, and those that served from its journal before. */
export interface EtcdProcess {
  readonly id: string;
  /** What etcd has of it is out of a backup, or was written before this process began. */
  isFormer(id: string): boolean;
}

/** Names this process. On the disk when this resolves, so that a later one knows it by any backup. */
export async function beginProcess(database: Database, random: Random): Promise<EtcdProcess> {
  database.migrate("journal etcd processes", STEPS);
  const id = random.token();
  const former = await database.write((sql) => {
    const all = sql.all("SELECT id FROM etcd_processes").map((row) => textColumn(row, "id"));
    sql.run("INSERT INTO etcd_processes (id) VALUES (?)", id);
    sql.run(FORGET);
    return new Set(all);
  });
  return { id, isFormer: (other) => former.has(other) };
}
