// SPDX-License-Identifier: Apache-2.0
import type { Context } from "../allocator/context.ts";
import { Mirror } from "../allocator/mirror.ts";
import { KeyedMutex } from "../allocator/mutex.ts";
import { type Clock, type Logger, type Metrics, type Random, unmetered } from "../allocator/ports.ts";
import { openKubernetesStore } from "../allocator/store/kubernetes.ts";
import type { Connection } from "../kube/connection.ts";
import { WatchHealth } from "../kube/watch-health.ts";
import { type ClusterInventory, clusterInventory } from "./cluster/inventory.ts";
import { followRecords } from "./cluster/records.ts";
import { type RunningWatches, startWatches } from "./cluster/watches.ts";

export interface ReplicaOptions {
  /** Stays open when the replica is closed: it belongs to whoever opened it. */
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
}

/** What one process of the webhook knows of the cluster, before it serves or controls anything. */
export interface Replica {
  readonly connection: Connection;
  /** Its view is `mirror`. */
  readonly context: Context;
  readonly mirror: Mirror;
  readonly watches: RunningWatches;
  readonly inventory: ClusterInventory;
  /** Resolves once records and cluster were listed whole; never, when the replica is closed before it. */
  readonly synced: Promise<void>;
  /** Whether admission can decide now, and what it waits for. */
  ready(): { readonly ready: boolean; readonly reason: string };
  /** Ends all watches. Repeatable. */
  close(): Promise<void>;
}

/** Begins to follow Berth's records and the cluster's objects; answers before anything is loaded. */
export async function openReplica(options: ReplicaOptions): Promise<Replica> {
  const { connection, clock, random, log, metrics = unmetered } = options;
  const stop = new AbortController();
  const health = new WatchHealth(clock, metrics);
  const store = openKubernetesStore({ connection, clock, random, log, health, metrics });
  const mirror = new Mirror(log);
  const records = followRecords({ store, mirror, clock, log }, stop.signal);
  const watches = startWatches({ connection, clock, random, log, health }, stop.signal);
  const inventory = clusterInventory({ watches, connection, clock });
  const context: Context = { store, view: mirror, clock, random, log, serial: new KeyedMutex() };
  let closing: Promise<void> | undefined;
  const end = async () => {
    stop.abort();
    await Promise.all([records.ended, watches.ended]);
    await store.close();
  };
  return {
    ...{ connection, context, mirror, watches, inventory },
    synced: Promise.all([records.synced, watches.synced]).then(() => undefined),
    ready: () => readiness(mirror, watches),
    close: () => {
      closing ??= end();
      return closing;
    },
  };
}

function readiness(mirror: Mirror, watches: RunningWatches): { ready: boolean; reason: string } {
  if (!mirror.ready) return { ready: false, reason: "records are not loaded" };
  if (!watches.isSynced()) return { ready: false, reason: "what is in the cluster is not loaded" };
  return { ready: true, reason: "" };
}
