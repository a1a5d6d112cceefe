// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import type { Clock, Logger, Random } from "../../allocator/base/ports.ts";
import { FOLLOWED, type RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { type CacheSync, syncCache } from "../../allocator/cache/sync.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { startGcLoop } from "../../allocator/gc/gc-loop.ts";
import { type AdmittedObjects, openAdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import { type Database, openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import { startAgent } from "../../ipam-plugin/agent/agent.ts";
import { EmbeddedClaims } from "../../ipam-plugin/agent/claims/embedded.ts";
import { linuxHost, readBootId } from "../../ipam-plugin/agent/journal/host.ts";
import { leasesOn } from "../../ipam-plugin/agent/journal/host-local-leases.ts";
import { RESULT_FOLDERS, recordsIn } from "../../ipam-plugin/agent/journal/runtime-records.ts";
import { AnchoredClock } from "../../system/anchored-clock.ts";
import { createMetrics } from "../../system/metrics.ts";
import { type CleanupStack, withCleanup } from "../../system/shutdown.ts";
import { waitForPools } from "../../webhook/admission/cache-wait.ts";
import { createHandlers } from "../../webhook/admission/routes.ts";
import { createApp } from "../../webhook/http/app.ts";
import { withMetrics } from "../../webhook/metrics.ts";
import { databaseOf } from "../backend/embedded-backend.ts";
import { HostRecordCache, hostOccupants } from "../backend/host-occupants.ts";
import { reviewsSocketOf } from "../backend/stack-file.ts";
import { announce, ownFolder, refuseTaken, requireShort } from "./data-folder.ts";
import { HostBlocks } from "./host-blocks.ts";
import { loadPools, type PoolsFile, readPools } from "./pools-file.ts";
import { startWebhook } from "./stack-webhook.ts";

export interface StackOptions {
  readonly dataDir: string;
  /** Where the CNI plugin finds the agent; `agent.sock` in the data folder if absent. */
  readonly socketPath?: string;
  /** Pools and namespaces to apply before serving, as a file of manifests. */
  readonly poolsFile?: string;
  /** Any that is free if absent or 0. */
  readonly webhookPort?: number;
  /** This host's name if absent. */
  readonly node?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface Stack {
  readonly webhookUrl: string;
  readonly socketPath: string;
  /** Drains the webhook, ends the agent's calls, and closes the database. Repeatable. */
  close(): Promise<void>;
}

/**
 * Webhook, allocator and agent in one process on one SQLite file. The agent serves first, for a node without it starts
 * no pod: what it answers for a claim it reads from the file, and only a new choice waits for the cache. Whatever was started is closed again, in reverse,
 * when a later part cannot start. Throws BerthError: CONFIG_INVALID for what the administrator can put right.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  return await withCleanup((closers) => assemble(options, closers));
}

async function assemble(
  options: StackOptions,
  closers: CleanupStack,
): Promise<Pick<Stack, "webhookUrl" | "socketPath">> {
  const { dataDir, random, log } = options;
  const clock = new AnchoredClock(options.clock); // what a record says is compared with what a later one says
  const socketPath = resolve(options.socketPath ?? join(dataDir, "agent.sock"));
  for (const path of [socketPath, reviewsSocketOf(dataDir)]) requireShort(path);
  // first: a file that cannot be read leaves no folder behind
  const pools = options.poolsFile === undefined ? undefined : await readPools(options.poolsFile);
  const folder = await ownFolder(dataDir, closers);
  refuseTaken(socketPath);
  const node = options.node ?? hostname();
  const records = await openRecords({ ...options, clock }, closers);
  const { context, view, admitted, synced } = records;
  const metrics = createMetrics(log);
  withMetrics(metrics, view);
  const collector = startGcLoop(context, new GarbageCollector(context, admitted), metrics);
  closers.push(() => collector.close());
  const enqueueForGc = collector.enqueue.bind(collector);
  const catchUp = () => waitForPools(context, view);
  const blocks = new HostBlocks({ context: { ...context, view }, admitted, node });
  closers.push(() => blocks.close());
  const handlers = createHandlers({
    ...{ context, inventory: admitted, embedded: admitted, enqueueForGc, catchUp, occupants: hostOccupants },
  });
  const kept = pools === undefined ? [] : await makePools(pools, handlers, records);
  const claimSource = new EmbeddedClaims({
    ...{ context, inventory: admitted, node, enqueueForGc: enqueueForGc, whole: synced },
    hasBlocks: (name) => blocks.isCut(name),
  });
  const { database } = records;
  const bootId = await readBootId();
  folder.keep(); // from here on an ADD may be answered
  const agent = await startAgent({
    ...{ database, socketPath, claimSource, clock, random, log, bootId, metrics },
    blockSource: blocks.source,
    pools: () => view.pools(),
    runtimeRecords: recordsIn(RESULT_FOLDERS, linuxHost),
    // files are written by the host's own clock
    hostLocalLeases: leasesOn(linuxHost, RESULT_FOLDERS, () => options.clock.now()),
  });
  closers.push(() => agent.close());
  await synced;
  blocks.serve(agent);
  const ready = () => ({ ready: view.ready, reason: "records are not loaded" });
  const app = createApp({ handlers, ready, metrics, log, clock });
  const webhook = await startWebhook({ ...options, app }, closers);
  await announce(dataDir, { pid: process.pid, ...webhook, socket: socketPath, node, kept }, closers);
  folder.started();
  return { webhookUrl: webhook.webhook, socketPath };
}

/** What is stored in the data folder, and kept in memory of it. */
interface StoredRecords {
  readonly database: Database;
  readonly admitted: AdmittedObjects;
  readonly context: Context;
  readonly view: RecordCache;
  /** Every record is in memory. */
  readonly synced: Promise<void>;
}

/** Ready once the pools are in memory. */
async function openRecords(
  { dataDir, clock, random, log }: StackOptions,
  closers: CleanupStack,
): Promise<StoredRecords> {
  const database = openDatabase(databaseOf(dataDir), { clock, log });
  closers.push(() => database.close());
  const store = openSqliteStore(database, { clock, random, log });
  closers.push(() => store.close());
  const admitted = openAdmittedObjects(database);
  const { view, pools, synced } = startCache({ store, log, clock, admitted }, closers);
  await pools;
  const context = { store, view, clock, random, log, serial: new KeyedMutex() };
  return { database, admitted, context, view, synced };
}

/** Gives what is there and the file has otherwise. */
async function makePools(
  pools: PoolsFile,
  handlers: ReturnType<typeof createHandlers>,
  { context: { store, log }, admitted, synced }: StoredRecords,
): Promise<readonly string[]> {
  await synced;
  const kept: string[] = [];
  const report = (key: string) => {
    kept.push(key);
    log.warn("what the file has otherwise is there and stays as it is; berthctl apply -f changes it", {
      key,
      file: pools.path,
    });
  };
  await loadPools(pools, { handlers, store, admitted, uuid: randomUUID, report });
  return kept;
}

function startCache(
  {
    store,
    log,
    clock,
    admitted,
  }: Pick<Context, "store" | "log" | "clock"> & { readonly admitted: AdmittedObjects },
  closers: CleanupStack,
): { readonly view: RecordCache } & Pick<CacheSync, "pools" | "synced"> {
  const view = new HostRecordCache(log, clock, { place: { podIsGone: admitted.podIsGone } });
  const stop = new AbortController();
  const following = syncCache(store, view, stop.signal, [...FOLLOWED, "block"]);
  const ended = following.ended.catch((error: unknown) => {
    log.error("records are no longer followed; restart the stack", { error });
  });
  closers.push(async () => {
    stop.abort();
    await ended;
  });
  return { view, ...following };
}
