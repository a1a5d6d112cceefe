// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import type { BlockEvidence } from "../../allocator/blocks/give-back.ts";
import { FOLLOWED, RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { type Half, Spread } from "../../allocator/cache/spread.ts";
import { syncCache } from "../../allocator/cache/sync.ts";
import type { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import type { Database } from "../../allocator/store/sqlite/database.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import type { BlockSource } from "../../ipam-plugin/agent/blocks/block-source.ts";
import type { ClaimSource } from "../../ipam-plugin/agent/claims/claim-source.ts";
import type { MarkFile } from "../../ipam-plugin/agent/journal/boot-mark.ts";
import type { RuntimeRecords } from "../../ipam-plugin/agent/journal/runtime-records.ts";
import { AnchoredClock } from "../../system/anchored-clock.ts";
import type { MemoryRecords } from "../model/memory-records.ts";
import type { Cluster } from "./cluster.ts";
import { RemoteCluster } from "./cluster.ts";
import type { InvariantCheck } from "./invariant-check.ts";
import { BEGIN, type Process } from "./process.ts";
import { type Quota, RemoteStore } from "./remote-store.ts";

export type Role = "webhook" | "agent";

/** What a test breaks, to see whether it is found: each puts something wrong between a process and what it relies on. */
export interface FaultInjection {
  readonly store?: (store: Store, of: { readonly role: Role; readonly cache: RecordCache }) => Store;
  readonly inventory?: (inventory: ClusterState, role: Role) => ClusterState;
  readonly claimSource?: (claimSource: ClaimSource, context: Context) => ClaimSource;
  readonly blockSource?: (source: BlockSource, cache: RecordCache) => BlockSource;
  /** What a controller takes for the proof that a block may go. */
  readonly blockEvidence?: (block: Stored<"block">) => BlockEvidence;
  readonly disk?: (database: Database, process: Process) => Database;
  /** After a review has let a pod in. */
  readonly reviewed?: (context: Context, inventory: ClusterState, pod: KubeObject) => Promise<void>;
  /** Instead of one that is the API server's. */
  readonly clock?: (ofHost: Clock) => Clock;
  /** Who runs the garbage collector. */
  readonly collector?: (
    collector: GarbageCollector,
    context: Context,
    inventory: ClusterState,
  ) => GarbageCollector;
  readonly mark?: (mark: MarkFile) => MarkFile;
  readonly runtimeRecords?: RuntimeRecords;
  /** Another boot id than the host's. */
  readonly bootId?: (bootId: string) => string;
}

/** What all processes share, each through a connection of its own. */
export interface Setting {
  readonly records: MemoryRecords;
  readonly cluster: Cluster;
  readonly quota: Quota;
  readonly invariants: InvariantCheck;
  readonly injection: FaultInjection;
  /** Agents serve pods that ask for nothing out of blocks; else a block that is granted counts as used. */
  readonly blocks: boolean;
  /** A claim may have lost what it was kept for: the garbage collector hears of it. */
  readonly enqueueForGc: (claim: Claim) => void;
}

/** What a process has of its own before it does anything: the view fills at once. */
export interface ProcessDeps {
  readonly context: Context;
  readonly cluster: RemoteCluster;
  readonly inventory: ClusterState;
  readonly cache: RecordCache;
  readonly synced: Promise<void>;
}

export function processDeps(process: Process, setting: Setting, role: Role): ProcessDeps {
  const { records, invariants, injection } = setting;
  const log = watchful(process, invariants);
  const cache = new RecordCache(log);
  const { quota } = setting;
  const remote = new RemoteStore(process, { records, quota, reads: invariants.reads });
  const store = injection.store?.(remote, { role, cache }) ?? remote;
  const following = syncCache(remote, cache, new AbortController().signal, [...FOLLOWED, "block"]);
  const cluster = new RemoteCluster(setting.cluster, process);
  const inventory = injection.inventory?.(cluster, role) ?? cluster;
  const { random } = process;
  const anchored = new AnchoredClock(process.clock);
  anchored.observe(BEGIN + process.post.schedule.time); // the first answer of the store says so, as an API server's does
  const clock = injection.clock?.(process.clock) ?? anchored;
  const half = (): Half => (process.post.name.endsWith("0") ? "even" : "odd");
  const spread = new Spread(clock, half);
  const context = { store, view: cache, clock, random, log, serial: new KeyedMutex(), spread };
  return { context, cluster, inventory, cache, synced: following.synced };
}

/** Whatever is logged with an error that nobody expected is a defect, however well it was survived. */
function watchful(process: Process, invariants: InvariantCheck): Logger {
  const judge = (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
    const { error } = fields;
    if (!(error instanceof Error) || !process.alive) return;
    if (error instanceof BerthError && error.code !== "INTERNAL") return;
    invariants.object(`${process.post.name} logged "${message}": ${error.stack ?? error.message}`);
  };
  return { debug: () => {}, info: () => {}, warn: judge, error: judge };
}
