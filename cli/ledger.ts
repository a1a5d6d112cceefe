// SPDX-License-Identifier: Apache-2.0
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AuditedAttachment } from "../allocator/audit.ts";
import { BerthError } from "../allocator/errors.ts";
import { Mirror } from "../allocator/mirror.ts";
import { silent } from "../allocator/ports.ts";
import { openDatabase } from "../allocator/store/database.ts";
import { openShelf, type Shelf } from "../allocator/store/shelf.ts";
import { openSqliteStore } from "../allocator/store/sqlite.ts";
import type { Kind, Store, Stored } from "../allocator/store/store.ts";
import type { Attachment } from "../ipam-plugin/agent/attachment.ts";
import { Journal } from "../ipam-plugin/agent/journal.ts";
import type { Scene } from "./command.ts";
import type { Use } from "./use.ts";

/** Everything that a stack keeps, whether it runs or not. */
export interface Ledger {
  readonly store: Store;
  readonly shelf: Shelf;
  /** Live ones only, as the agent's journal has them. */
  readonly attachments: () => readonly Attachment[];
}

/** The file that a stack keeps everything in. */
export function databaseOf(dataDir: string): string {
  return join(dataDir, "berth.db");
}

/**
 * Opens the data folder's database for `work` and closes it again. Another process may have it open too.
 * Throws STORE_UNAVAILABLE when there is none, and what the database throws.
 */
export async function withLedger<T>(
  scene: Pick<Scene, "io" | "dataDir">,
  mode: "read" | "write",
  work: (ledger: Ledger) => Promise<T>,
): Promise<T> {
  const path = databaseOf(scene.dataDir);
  if (!existsSync(path)) {
    throw new BerthError(
      "STORE_UNAVAILABLE",
      `there is nothing in ${scene.dataDir} yet; start a stack with: berthctl up --data ${scene.dataDir}`,
      { details: { path } },
    );
  }
  const { clock, random } = scene.io;
  const database = openDatabase(path, { readOnly: mode === "read" });
  try {
    const store = openSqliteStore(database, { clock, random, log: silent });
    try {
      const journal = new Journal(database);
      return await work({
        store,
        shelf: openShelf(database),
        attachments: () => journal.load().attachments.filter(({ state }) => state === "attached"),
      });
    } finally {
      await store.close();
    }
  } finally {
    database.close();
  }
}

/** All records of a kind, in the order of their keys. */
export async function allOf<K extends Kind>(store: Store, kind: K): Promise<Stored<K>[]> {
  const all: Stored<K>[] = [];
  for await (const stored of store.list(kind)) all.push(stored);
  return all;
}

/** The records as planning wants them. */
export async function mirrorOf(store: Store): Promise<Mirror> {
  const mirror = new Mirror(silent);
  for (const kind of ["pool", "claim", "reservation"] as const) {
    mirror.apply(kind, { type: "relist" });
    for await (const stored of store.list(kind)) mirror.apply(kind, { type: "put", stored });
    mirror.apply(kind, { type: "synced" });
  }
  return mirror;
}

/** A use as `audit` compares it; `host` is the node of what does not name its own. */
export function audited(use: Use, host: string): AuditedAttachment {
  const { scope, containerID, claim, result } = use;
  return {
    node: use.node ?? host,
    network: scope.network,
    containerID,
    interface: use.interface,
    ...(claim === undefined ? {} : { claim }),
    addresses: result.addresses.map(({ address }) => address),
  };
}
