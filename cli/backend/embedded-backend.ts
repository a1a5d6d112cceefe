// SPDX-License-Identifier: Apache-2.0
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { AuditedAttachment } from "../../allocator/gc/audited-attachment.ts";
import type { ClaimPlace } from "../../allocator/model/container-claim.ts";
import { type AdmittedObjects, openAdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import type { Attachment } from "../../ipam-plugin/agent/journal/attachment.ts";
import { Journal } from "../../ipam-plugin/agent/journal/journal.ts";
import type { CommandContext } from "../terminal/command.ts";
import type { AttachmentUse } from "./attachment-report.ts";
import { notYours } from "./stack-file.ts";

/** Everything that a stack keeps, whether it runs or not. */
export interface EmbeddedBackend {
  readonly store: Store;
  readonly admitted: AdmittedObjects;
  /** Live ones only, as the agent's journal has them. */
  readonly attachments: () => readonly Attachment[];
  /** Id and position of the node's journal, as they are now; the id is empty where no agent has begun to serve from it. */
  readonly journal: () => { readonly journal: string; readonly position: number };
}

/** The file that a stack keeps everything in. */
export function databaseOf(dataDir: string): string {
  return join(dataDir, "berth.db");
}

/**
 * Opens the data folder's database for `work` and closes it again. Another process may have it open too.
 * Throws STORE_UNAVAILABLE when there is none or it is somebody else's, and what the database throws.
 */
export async function withEmbeddedBackend<T>(
  context: Pick<CommandContext, "io" | "dataDir">,
  mode: "read" | "write",
  work: (backend: EmbeddedBackend) => Promise<T>,
): Promise<T> {
  const path = databaseOf(context.dataDir);
  requireReadable(path, context.dataDir);
  const { clock, random } = context.io;
  const database = openDatabase(path, { readOnly: mode === "read" });
  try {
    const store = openSqliteStore(database, { clock, random, log: noopLogger });
    try {
      const journal = new Journal(database);
      return await work({
        store,
        admitted: openAdmittedObjects(database),
        attachments: () => journal.load().attachments.filter(({ state }) => state === "attached"),
        journal: () => ({ journal: journal.knownId() ?? "", position: journal.position() }),
      });
    } finally {
      await store.close();
    }
  } finally {
    database.close();
  }
}

/** A folder that is closed hides from others whether the file is there. */
function requireReadable(path: string, dataDir: string): void {
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EACCES") throw notYours(path, error);
    throw new BerthError(
      "STORE_UNAVAILABLE",
      `there is nothing in ${dataDir} yet; start a stack with: berthctl up --data ${dataDir}`,
      { details: { path } },
    );
  }
}

/** All records of a kind, in the order of their keys. */
export async function allOf<K extends Kind>(store: Store, kind: K): Promise<Stored<K>[]> {
  const all: Stored<K>[] = [];
  for await (const stored of store.list(kind)) all.push(stored);
  return all;
}

/** The records as planning wants them. */
export async function loadCache(store: Store, place: ClaimPlace = {}): Promise<RecordCache> {
  const cache = new RecordCache(noopLogger, place);
  for (const kind of ["pool", "claim", "reservation", "block"] as const) {
    cache.apply(kind, { type: "relist" });
    for await (const stored of store.list(kind)) cache.apply(kind, { type: "put", stored });
    cache.apply(kind, { type: "synced" });
  }
  return cache;
}

/** A use as `audit` compares it; `host` is the node of what does not name its own. */
export function toAuditAttachment(use: AttachmentUse, host: string): AuditedAttachment {
  const { scope, containerID, claim, result } = use;
  return {
    node: use.node ?? host,
    // as the agent does: networks of one name are told apart by their dataDir
    network: `${scope.dataDir}/${scope.network}`,
    containerID,
    interface: use.interface,
    ...(claim === undefined ? {} : { claim }),
    ...(["ranges", "static"].includes(use.source) ? { ofNetwork: scope.network } : {}),
    ...(use.source !== "block" || use.pool === undefined ? {} : { ofBlocksOf: use.pool }),
    addresses: result.addresses.map(({ address }) => address),
  };
}
