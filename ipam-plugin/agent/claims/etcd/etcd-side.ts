// SPDX-License-Identifier: Apache-2.0
import { alarmOf } from "../../../../allocator/base/alarm.ts";
import { BerthError } from "../../../../allocator/base/errors.ts";
import { KeyedMutex } from "../../../../allocator/base/keyed-mutex.ts";
import type { Clock, Logger, Metrics, Random } from "../../../../allocator/base/ports.ts";
import { RecordCache } from "../../../../allocator/cache/cache.ts";
import type { Context } from "../../../../allocator/cache/context.ts";
import { syncCache } from "../../../../allocator/cache/sync.ts";
import { GarbageCollector } from "../../../../allocator/gc/garbage-collector.ts";
import { startGcLoop } from "../../../../allocator/gc/gc-loop.ts";
import { isDetached } from "../../../../allocator/lifecycle/bind.ts";
import { bareNamespace, type ClusterState } from "../../../../allocator/model/cluster-state.ts";
import type { Pool } from "../../../../allocator/pool/pool.ts";
import type { EtcdAccess } from "../../../../allocator/store/etcd/access.ts";
import { EtcdClient, type EtcdClientDeps } from "../../../../allocator/store/etcd/client.ts";
import { HostRegistry } from "../../../../allocator/store/etcd/hosts.ts";
import { openEtcdStore } from "../../../../allocator/store/etcd/store.ts";
import type { WriteGuard } from "../../../../allocator/store/etcd/write-guard.ts";
import type { Store } from "../../../../allocator/store/store.ts";
import type { EtcdProcess } from "../../journal/etcd-processes.ts";
import type { ClaimSource } from "../claim-source.ts";
import { EmbeddedClaims } from "../embedded.ts";
import { isContainerName } from "./container-name.ts";
import { EtcdClaims } from "./etcd-claims.ts";
import { EtcdNetworks } from "./etcd-networks.ts";
import { Fences } from "./fences.ts";
import { FormerClaims, freeFormer, releaseFormer } from "./former-containers.ts";
import { type InUse, isKeptIn } from "./in-use.ts";
import { LostClaims } from "./lost-claims.ts";
import { Presence } from "./presence.ts";

export interface EtcdSideOptions {
  readonly access: EtcdAccess;
  /** This host's name among those that share the etcd. */
  readonly node: string;
  /** The id of this host's journal. */
  readonly journal: () => string;
  readonly process: EtcdProcess;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** When this host booted, in milliseconds since 1970; absent or 0: it is not known. */
  readonly bootedAt?: number;
  /** How often the host says that it is there; BEAT_MS if absent. */
  readonly beatMs?: number;
  /** For tests: in place of gRPC. */
  readonly connect?: EtcdClientDeps["connect"];
}

/** What an agent has of an etcd: one connection to it, whatever the networks are. */
export interface EtcdSide {
  readonly claimSource: ClaimSource;
  readonly networks: EtcdNetworks;
  /** Its id, as it was told last; undefined: it was not reached yet. */
  readonly cluster: string | undefined;
  /** Everything under this host's name there is its own. */
  readonly isOwn: boolean;
  /** Resolves once its records are known, and this host in it. */
  readonly known: Promise<unknown>;
  /** Reaches the same etcd by other URLs or certificates from now on. Throws CONFIG_INVALID. */
  reachBy(access: EtcdAccess): Promise<void>;
  pools(): Iterable<Pool>;
  /** Says in etcd that this host is there. `inUse`: what containers of it have from there. */
  start(inUse: () => readonly InUse[]): void;
  close(): Promise<void>;
}

type CachedContext = Context & { readonly view: RecordCache };
type GcLoop = ReturnType<typeof startGcLoop>;

/** How long an ADD waits for the records of an etcd that was not reached before. */
const WHOLE_MS = 5_000;

/** Connects with the first call, and does not wait for it. Throws CONFIG_INVALID or CERTIFICATE_INVALID. */
export function openEtcdSide(options: EtcdSideOptions): EtcdSide {
  const { access, node, clock, random, log, metrics } = options;
  const client = new EtcdClient(access, options);
  const registry = new HostRegistry(client, log);
  const { presence, store, isKept } = openGuardedStore(options, client, registry);
  const view = new RecordCache(log, { ofContainers: true });
  const lost = new LostClaims({ ...options, view, presence, isKept });
  const stop = new AbortController();
  const following = syncCache(store, view, stop.signal);
  const ended = following.ended.catch((error: unknown) => {
    log.error("records in etcd are no longer followed; restart this process", { error });
  });
  const context: CachedContext = { store, view, clock, random, log, serial: new KeyedMutex() };
  const known = Promise.all([following.synced, presence.known]);
  known.catch(() => {}); // whoever waits for it hears of it
  const unreached = () =>
    presence.fault ?? `etcd at ${client.place} was not reached since this agent started`;
  const whole = () => inTime(known, clock, unreached);
  const { inventory, collector } = startCollector(context, new Fences(registry, node, clock), metrics);
  const claims = claimsOf(options, { context, inventory, presence, collector, whole });
  return {
    claimSource: claims,
    networks: new EtcdNetworks({ context, node, registry, presence, whole }),
    get cluster() {
      return client.cluster;
    },
    get isOwn() {
      return presence.isOwn;
    },
    known,
    reachBy: (other) => client.reachBy(other),
    pools: () => view.pools(),
    start(inUse) {
      presence.start(inUse);
      lost.start(inUse);
    },
    async close() {
      await Promise.all([presence.close(), lost.close(), claims.close(), collector.close()]);
      stop.abort();
      await store.close();
      await ended;
      await client.close();
    },
  };
}

/** The store, and this host's presence, without which a write that gives it an address does not count. */
function openGuardedStore(options: EtcdSideOptions, client: EtcdClient, registry: HostRegistry) {
  const { node, clock, random, log, metrics } = options;
  const isKept = (use: InUse) => isKeptIn(store, use, node);
  const presence = new Presence({ ...options, registry, isKept });
  const guard: WriteGuard = {
    key: registry.keyOf(node),
    covers: (claim) => claim.binding?.node === node && !isDetached(claim),
    revision: (failed) => presence.revision(failed),
  };
  const store: Store = openEtcdStore({ client, clock, random, log, metrics, guard });
  return { presence, store, isKept };
}

/** It collects what hosts left that a person has fenced: nobody else says that a container is gone. */
function startCollector(context: CachedContext, fences: Fences, metrics: Metrics) {
  const inventory = withoutPods((name) => fences.isFenced(name));
  const cachedState = withoutPods((name) => fences.wasFenced(name));
  const collector = startGcLoop(context, new GarbageCollector(context, inventory, { cachedState }), metrics);
  return { inventory, collector };
}

interface ClaimParts {
  readonly context: CachedContext;
  readonly inventory: ClusterState;
  readonly presence: Presence;
  readonly collector: GcLoop;
  /** Resolves once the records are known. */
  readonly whole: () => Promise<void>;
}

function claimsOf({ node, clock, log, bootedAt = 0 }: EtcdSideOptions, parts: ClaimParts): EtcdClaims {
  const { context, inventory, presence, collector, whole } = parts;
  const former = new FormerClaims(context.view, bootedAt);
  return new EtcdClaims({
    ...{ presence, clock, log },
    releaseFormer: async (end) => {
      await whole(); // which claims it has is known by the view
      await releaseFormer(context, former, end);
    },
    claims: new EmbeddedClaims({
      ...{ context, inventory, node },
      enqueueForGc: collector.enqueue.bind(collector),
      bindsAtOnce: true,
      onHosts: true,
      former: (request) => freeFormer(context, former, request),
      isNew: ({ name }) => isContainerName(name),
    }),
  });
}

/** No host knows another one's containers: an address is free when its own host says so, or a person has fenced that one. */
function withoutPods(fenced: ClusterState["fenced"]): ClusterState {
  return {
    pod: async () => undefined,
    workload: async () => "never admitted",
    namespace: async (name) => bareNamespace(name),
    fenced,
    onChange: () => () => {}, // nothing of that ever changes
  };
}

async function inTime(work: Promise<unknown>, clock: Clock, why: () => string): Promise<void> {
  const late = Promise.withResolvers<never>();
  const stop = alarmOf(clock, WHOLE_MS, () => late.reject(new BerthError("STORE_UNAVAILABLE", why())));
  try {
    await Promise.race([work, late.promise]);
  } finally {
    stop();
  }
}
