// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "../../allocator/claim.ts";
import type { Context } from "../../allocator/context.ts";
import { BerthError } from "../../allocator/errors.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import { follow, Mirror } from "../../allocator/mirror.ts";
import { KeyedMutex } from "../../allocator/mutex.ts";
import type { Logger } from "../../allocator/ports.ts";
import type { Database } from "../../allocator/store/database.ts";
import type { Store } from "../../allocator/store/store.ts";
import type { Mooring } from "../../ipam-plugin/agent/mooring.ts";
import type { Books } from "../model/books.ts";
import type { Cluster } from "./cluster.ts";
import { RemoteCluster } from "./cluster.ts";
import type { Process } from "./process.ts";
import { RemoteStore } from "./remote-store.ts";
import type { Witness } from "./witness.ts";

export type Role = "webhook" | "agent";

/** What a test breaks, to see whether it is found: each puts something wrong between a process and what it relies on. */
export interface Tampering {
  readonly store?: (store: Store, of: { readonly role: Role; readonly mirror: Mirror }) => Store;
  readonly inventory?: (inventory: Inventory, role: Role) => Inventory;
  readonly mooring?: (mooring: Mooring, context: Context) => Mooring;
  readonly disk?: (database: Database, process: Process) => Database;
  /** Another boot id than the host's. */
  readonly bootId?: (bootId: string) => string;
}

/** What all processes share, each through a connection of its own. */
export interface Setting {
  readonly books: Books;
  readonly cluster: Cluster;
  readonly witness: Witness;
  readonly tampering: Tampering;
  /** A claim may have lost what it was kept for: whoever keeps house hears of it. */
  readonly suspect: (claim: Claim) => void;
}

/** What a process has of its own before it does anything: the view fills at once. */
export interface Outfit {
  readonly context: Context;
  readonly cluster: RemoteCluster;
  readonly inventory: Inventory;
  readonly mirror: Mirror;
  readonly synced: Promise<void>;
}

export function outfit(process: Process, setting: Setting, role: Role): Outfit {
  const { books, witness, tampering } = setting;
  const log = watchful(process, witness);
  const mirror = new Mirror(log);
  const remote = new RemoteStore(process, books, (who, kind, stored) => witness.onRead(who, kind, stored));
  const store = tampering.store?.(remote, { role, mirror }) ?? remote;
  const following = follow(remote, mirror, new AbortController().signal);
  const cluster = new RemoteCluster(setting.cluster, process);
  const inventory = tampering.inventory?.(cluster, role) ?? cluster;
  const { clock, random } = process;
  const context = { store, view: mirror, clock, random, log, serial: new KeyedMutex() };
  return { context, cluster, inventory, mirror, synced: following.synced };
}

/** Whatever is logged with an error that nobody expected is a defect, however well it was survived. */
function watchful(process: Process, witness: Witness): Logger {
  const judge = (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
    const { error } = fields;
    if (!(error instanceof Error) || !process.alive) return;
    if (error instanceof BerthError && error.code !== "INTERNAL") return;
    witness.object(`${process.post.name} logged "${message}": ${error.stack ?? error.message}`);
  };
  return { debug: () => {}, info: () => {}, warn: judge, error: judge };
}
