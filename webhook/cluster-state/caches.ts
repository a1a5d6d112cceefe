// SPDX-License-Identifier: Apache-2.0

import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import {
  type Clock,
  type Logger,
  type Metrics,
  noopMetrics,
  type Random,
} from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { type Half, Spread } from "../../allocator/cache/spread.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import { openKubernetesStore } from "../../allocator/store/kubernetes/store.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { WatchMetrics } from "../../kube/watch/watch-metrics.ts";
import { type RunningInformers, startInformers } from "./informers.ts";
import { type ClusterStates, clusterStates } from "./live-and-cached.ts";
import { followOccupants, occupantsSeen } from "./occupants.ts";
import { syncRecords } from "./record-cache.ts";

export interface CachesOptions {
  /** Stays open when the replica is closed: it belongs to whoever opened it. */
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Which requests in other systems' words are for Berth; `all` of them if absent. */
  readonly dialects?: Dialects;
}

/** What one process of the webhook knows of the cluster, before it serves or controls anything. */
export interface ClusterCaches {
  readonly connection: Connection;
  /** Its view is `cache`. */
  readonly context: Context;
  readonly cache: RecordCache;
  readonly watches: RunningInformers;
  readonly inventory: ClusterStates;
  /** Resolves once records and cluster were listed whole; never, when the replica is closed before it. */
  readonly synced: Promise<void>;
  /** Every address that is in use and not from Berth. */
  occupants(): Iterable<Occupied>;
  /** Whether admission can decide now, and what it waits for. */
  ready(): { readonly ready: boolean; readonly reason: string };
  /** Says which half of a pool's free addresses this replica goes to first, while others are at work on it too. */
  goesFirstTo(half: () => Half): void;
  /** Ends all watches. Repeatable. */
  close(): Promise<void>;
}

/** Begins to follow Berth's records and the cluster's objects; answers before anything is loaded. */
export async function openCaches(options: CachesOptions): Promise<ClusterCaches> {
  const { connection, clock, random, log, metrics = noopMetrics } = options;
  const stop = new AbortController();
  const health = new WatchMetrics(clock, metrics);
  const store = openKubernetesStore({ connection, clock, random, log, health, metrics });
  const cache = new RecordCache(log);
  const records = syncRecords({ store, cache, clock, log }, stop.signal);
  const informers = startInformers({ ...options, health }, stop.signal);
  const inventory = clusterStates({ ...options, watches: informers });
  let half = (): Half => "odd";
  const context: Context = {
    store,
    view: cache,
    clock,
    random,
    log,
    serial: new KeyedMutex(),
    spread: new Spread(clock, () => half()),
    ...dialectsOf(options),
  };
  const synced = Promise.all([records.synced, informers.synced]).then(() => {
    // before that, what is Berth's own would look like others'
    if (!stop.signal.aborted) followOccupants(informers, cache);
  });
  let closing: Promise<void> | undefined;
  const end = async () => {
    stop.abort();
    await Promise.all([records.ended, informers.ended]);
    await store.close();
  };
  return {
    ...{ connection, context, cache, watches: informers, inventory },
    synced,
    occupants: () => occupantsSeen(informers, cache),
    ready: () => readiness(cache, informers),
    goesFirstTo: (chosen) => {
      half = chosen;
    },
    close: () => {
      closing ??= end();
      return closing;
    },
  };
}

function dialectsOf({ dialects }: CachesOptions): Pick<Context, "dialects"> {
  return dialects === undefined ? {} : { dialects };
}

function readiness(cache: RecordCache, informers: RunningInformers): { ready: boolean; reason: string } {
  if (!(cache.ready && cache.knows("block"))) return { ready: false, reason: "records are not loaded" };
  if (!informers.isSynced()) {
    const kinds = informers.awaited().join(", ");
    return { ready: false, reason: `what is in the cluster is not loaded: ${kinds}` };
  }
  return { ready: true, reason: "" };
}
