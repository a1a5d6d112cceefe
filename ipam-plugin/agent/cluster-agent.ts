// SPDX-License-Identifier: Apache-2.0

import type { Clock, Logger, Metrics, Random } from "../../allocator/base/ports.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import type { EtcdAccess } from "../../allocator/store/etcd/access.ts";
import { openKubernetesStore } from "../../allocator/store/kubernetes/store.ts";
import type { Database } from "../../allocator/store/sqlite/database.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { withRequestMetrics } from "../../kube/api/metered-connection.ts";
import { PODS } from "../../kube/api/resource.ts";
import { DONE, type Outcome, WorkQueue } from "../../kube/controller/workqueue.ts";
import { WatchMetrics } from "../../kube/watch/watch-metrics.ts";
import { type Agent, startAgent } from "./agent.ts";
import type { BlockSource } from "./blocks/block-source.ts";
import { isInApi } from "./claims/claim-place.ts";
import { notLoadedWords } from "./claims/cluster/claim-lookup.ts";
import type { NodePod, PodName } from "./claims/cluster/node-cache.ts";
import { NodeClaims } from "./claims/cluster/node-claims.ts";
import { NodeInformers } from "./claims/cluster/node-informers.ts";
import { nodePod } from "./claims/cluster/node-projections.ts";
import { RecordedSandboxes } from "./claims/cluster/recorded-sandboxes.ts";
import { StatusWriter } from "./claims/cluster/status-writer.ts";
import { StrayDetector } from "./claims/cluster/stray-detector.ts";
import type { EtcdSides } from "./claims/etcd/etcd-sides.ts";
import { markFileOf } from "./journal/boot-mark.ts";
import { linuxHost } from "./journal/host.ts";
import type { HostLocalLeases } from "./journal/host-local-leases.ts";
import { Journal } from "./journal/journal.ts";
import { KnownEtcds } from "./journal/known-etcds.ts";
import { bootTime, isStillThere, type RecordOf, type RuntimeRecords } from "./journal/runtime-records.ts";
import type { UnreadRecords } from "./journal/unread-records.ts";
import { gaugeOf } from "./metrics.ts";
import { startWhenBound } from "./refuse-until-adopted.ts";

interface NodeAgentOptions {
  /** This node's name in the cluster. */
  readonly node: string;
  /** Closed with the agent. */
  readonly connection: Connection;
  /** Where the journal is kept; stays the caller's to close. */
  readonly database: Database;
  readonly socketPath: string;
  readonly bootId: string;
  /** What the runtime says of this node's sandboxes. */
  readonly runtimeRecords: RuntimeRecords;
  /** What it says nothing of, though it has a record. */
  readonly unreadRecords: UnreadRecords;
  /** And of one of them; absent: nothing. */
  readonly recordOf?: RecordOf;
  /** What host-local gave away before its network was Berth's. */
  readonly hostLocalLeases?: HostLocalLeases;
  /** Aborts when the process is told to end: one that must not serve waits for a person until then. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Which requests in other systems' words are for Berth; `all` of them if absent. */
  readonly dialects?: Dialects;
  /** The folder of the certificates of etcds that networks name; absent: no network is kept in etcd. */
  readonly etcdCertificates?: string;
  /** Refusals name nodes and blocks; absent: they count them. */
  readonly refusalsNameAll?: boolean;
  /** Pods may come to be without a review; absent: each that is to be reviewed was. */
  readonly unreviewedPods?: boolean;
}

interface NodeAgent extends Agent {
  /** The claims are loaded: every ADD can be served. */
  readonly isReady: boolean;
  /** Of this node's Node object, so far as it is known; it is followed from the first call on. */
  nodeUID(): string | undefined;
}

/** An ADD may wait for a status that is being written: rather write it once more than make a pod wait for long. */
const CALL_MS = 4_000;
/** The watch of pods may be behind that of claims for a moment. */
const POD_UNSEEN_MS = 1_000;
/** How long looks that are under way at the end may take. */
const LAST_LOOK_MS = 2_000;
/** A look at a claim waits while an ADD has its turn. */
const LOOKS_AT_ONCE = 16;

/**
 * Starts the agent of a node of a cluster. It serves at once: a DEL needs no API server, an ADD waits for what it has to
 * know. While another journal has served in this boot it refuses in words, until a person confirms this one. Throws
 * what startAgent throws.
 */
export async function startNodeAgent(options: NodeAgentOptions): Promise<NodeAgent> {
  const { clock, log, metrics } = options;
  const connection = withRequestMetrics(options.connection, metrics, clock);
  const followed = followNode(options, connection);
  const { watch, queue, claims } = followed;
  gaugeOf(metrics, "berth_ready", () => (watch.isSynced ? 1 : 0));
  const etcds = await etcdsOf(options, claims);
  const agent = await startServing(options, followed, etcds).catch(async (error: unknown) => {
    await etcds?.close();
    throw error;
  });
  followed.serving(agent);
  etcds?.start(() => agent.attached());
  const journalBlocks = () =>
    void agent.blocksChanged().catch((error: unknown) => {
      log.warn("blocks of this node were not journalled", { error });
    });
  watch.onBlocks(journalBlocks);
  watch.onFacts(() => agent.factsChanged());
  const attached = () => agent.attached().filter(({ claim }) => !claim || isInApi(claim));
  const strays = new StrayDetector({ view: watch, attached, clock, log });
  gaugeOf(metrics, "berth_agent_claims", () => watch.size);
  gaugeOf(metrics, "berth_agent_stray_sandboxes", () => strays.find().length);
  return inBackground(agent, { watch, queue, strays, connection, clock, etcds });
}

/** What is known of the node's claims and pods, and what is done about a claim that changes. */
interface FollowedNode {
  readonly watch: NodeInformers;
  readonly store: Store;
  readonly queue: WorkQueue;
  readonly claims: NodeClaims;
  /** Claims are looked at from now on: this agent has the socket. */
  serving(agent: Agent): void;
}

function followNode(options: NodeAgentOptions, connection: Connection): FollowedNode {
  const { node, clock, random, log, metrics } = options;
  const bounded = withDeadline(connection, CALL_MS);
  const health = new WatchMetrics(clock, metrics);
  const watch = new NodeInformers({ connection, node, clock, random, log, health });
  const store = openKubernetesStore({ connection: bounded, clock, random, log, metrics });
  const started = Promise.withResolvers<Agent>();
  let serving: Agent | undefined;
  const queue: WorkQueue = new WorkQueue({
    ...{ name: "claims", clock, random, log, concurrency: LOOKS_AT_ONCE, metrics },
    work: (claim) => look(claim, started.promise, claims),
  });
  const claims = new NodeClaims({
    ...{ node, clock, log, view: watch },
    ...(options.dialects === undefined ? {} : { dialects: options.dialects }),
    ...(options.recordOf === undefined ? {} : { recordOf: options.recordOf }),
    recorded: new RecordedSandboxes({
      ...{ records: options.runtimeRecords, unread: options.unreadRecords, isStillThere },
      ...{ host: linuxHost, node, bootId: options.bootId },
    }),
    reports: new StatusWriter({ store, node, clock }),
    livePod: podsOf(bounded),
    hasBlocks: (pool) => serving?.hasBlocks(pool) === true,
    allPools: () => serving?.allPools(),
    checkAfter: (claim, afterMs) => queue.addAfter(claim, afterMs),
    ...(options.unreviewedPods === true ? { storedClaim: (claim) => store.get("claim", claim) } : {}),
  });
  lookAtChanges(watch, queue, claims);
  return {
    ...{ watch, store, queue, claims },
    serving(agent) {
      serving = agent;
      started.resolve(agent);
    },
  };
}

function lookAtChanges(watch: NodeInformers, queue: WorkQueue, claims: NodeClaims): void {
  watch.onChange({
    claim: (claim, now) => {
      claims.changed(claim, now);
      queue.addAfter(claim, now !== undefined && isPodSeen(now, watch) ? 0 : POD_UNSEEN_MS);
    },
    pod: (changed) => {
      for (const claim of changed) queue.addAfter(claim, 0);
    },
  });
}

async function startServing(
  options: NodeAgentOptions,
  { watch, store, claims }: FollowedNode,
  etcds: EtcdSides | undefined,
): Promise<Agent> {
  const { node, socketPath, signal, clock, log, runtimeRecords, refusalsNameAll = false } = options;
  return await startWhenBound(
    () =>
      startAgent({
        ...options,
        claimSource: etcds?.claimSource ?? claims,
        ...(etcds && { sharedNetworks: etcds }),
        blockSource: blocksOf(watch, { statuses: { node, store }, refusalsNameAll }),
        notReady: () => (watch.isSynced ? undefined : notLoadedWords(node)),
      }),
    { socketPath, signal, clock, log, runtimeRecords, mark: markFileOf(socketPath) },
  );
}

/**
 * Networks in etcd beside the cluster's own pools, if the administrator has mounted certificates for them. What speaks to
 * etcd, and HTTP/2 under it, takes 5 MB and is loaded on those nodes alone.
 */
async function etcdsOf(options: NodeAgentOptions, others: NodeClaims): Promise<EtcdSides | undefined> {
  const { etcdCertificates: certificates, database } = options;
  if (certificates === undefined) return undefined;
  const { EtcdSides } = await import("./claims/etcd/etcd-sides.ts");
  const journal = new Journal(database);
  return new EtcdSides({
    ...options,
    bootedAt: await bootTime(linuxHost),
    others,
    journal: () => journal.knownId() ?? "",
    rules: { certificates, provenOnly: true },
    journalled: new KnownEtcds<EtcdAccess>(database),
  });
}

function blocksOf(
  watch: NodeInformers,
  about: Required<Pick<BlockSource, "statuses" | "refusalsNameAll">>,
): BlockSource {
  return {
    ...about,
    get isSynced() {
      return watch.areBlocksSynced;
    },
    blocks: () => watch.blocks(),
    pool: (name) => watch.pool(name),
    pools: () => watch.pools(),
    factsOf: (pod) => watch.factsOf(pod),
    ownNode: () => watch.ownNode(),
    ownersOf: (pool) => watch.ownersOf(pool),
  };
}

/** Brings the claim's status in line with the journal. */
async function look(claim: string, started: Promise<Agent>, claims: NodeClaims): Promise<Outcome> {
  const agent = await started;
  await agent.unlessInUse(claim, () => claims.settle(claim));
  await claims.report(claim);
  return DONE;
}

interface Works {
  readonly watch: NodeInformers;
  readonly queue: WorkQueue;
  readonly strays: StrayDetector;
  readonly connection: Connection;
  readonly clock: Clock;
  readonly etcds: EtcdSides | undefined;
}

/**
 * Begins to follow the API server, now that the socket is its own. At the end it looks at no claim any more before it
 * gives the socket up: what the next process lists is newer than all that this one went by. The ADDs that it has taken
 * in go on until they are answered, and so do the watches that they wait for.
 */
function inBackground(agent: Agent, { watch, queue, strays, connection, clock, etcds }: Works): NodeAgent {
  const [stop, stopLooks] = [new AbortController(), new AbortController()];
  const { signal } = stop;
  const looking = watch.synced.then(() => queue.run(stopLooks.signal));
  const running = Promise.all([watch.run(signal), strays.run(signal)]);
  let closing: Promise<void> | undefined;
  const closeAll = async () => {
    stopLooks.abort();
    const looked = watch.isSynced ? looking : Promise.resolve();
    const over = new AbortController();
    await Promise.race([looked, clock.sleep(LAST_LOOK_MS, over.signal)]);
    over.abort();
    await agent.close();
    await etcds?.close();
    stop.abort();
    connection.close();
    await Promise.all([running, looked]);
  };
  return {
    ...agent,
    get isReady() {
      return watch.isSynced;
    },
    nodeUID: () => {
      watch.followNode();
      return watch.ownNode()?.uid;
    },
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}

function isPodSeen({ record }: Stored<"claim">, watch: NodeInformers): boolean {
  const { namespace, binding } = record;
  return binding !== undefined && watch.pod({ namespace, name: binding.podName })?.uid === binding.podUID;
}

/** Pods as the API server has them at this moment. */
function podsOf(connection: Connection): (pod: PodName) => Promise<NodePod | undefined> {
  const client = new Client(connection, PODS);
  return async ({ namespace, name }) => {
    const item = await client.get({ namespace, name });
    return item && nodePod(item);
  };
}

function withDeadline(connection: Connection, timeoutMs: number): Connection {
  return {
    call: (call) => connection.call({ timeoutMs, ...call }),
    stream: (call, signal) => connection.stream(call, signal),
    close: () => connection.close(),
  };
}
