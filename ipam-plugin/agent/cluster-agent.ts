// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../allocator/base/ports.ts";
import type { EtcdAccess } from "../../allocator/store/etcd/access.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { withRequestMetrics } from "../../kube/api/metered-connection.ts";
import type { WorkQueue } from "../../kube/controller/workqueue.ts";
import { type Agent, startAgent } from "./agent.ts";
import type { BlockSource } from "./blocks/block-source.ts";
import { isInApi } from "./claims/claim-place.ts";
import { notLoadedWords } from "./claims/cluster/claim-lookup.ts";
import type { NodeClaims } from "./claims/cluster/node-claims.ts";
import type { NodeInformers } from "./claims/cluster/node-informers.ts";
import { StrayDetector } from "./claims/cluster/stray-detector.ts";
import type { EtcdSides } from "./claims/etcd/etcd-sides.ts";
import { type FollowedNode, followNode } from "./followed-node.ts";
import { markFileOf } from "./journal/boot-mark.ts";
import { beginProcess } from "./journal/etcd-processes.ts";
import { linuxHost } from "./journal/host.ts";
import { Journal } from "./journal/journal.ts";
import { KnownEtcds } from "./journal/known-etcds.ts";
import { bootTime } from "./journal/runtime-records.ts";
import { gaugeOf } from "./metrics.ts";
import type { NodeAgentOptions } from "./node-agent-options.ts";
import { startWhenBound } from "./refuse-until-adopted.ts";

interface NodeAgent extends Agent {
  /** The claims are loaded: every ADD can be served. */
  readonly isReady: boolean;
  /** Of this node's Node object, so far as it is known; it is followed from the first call on. */
  nodeUID(): string | undefined;
}

/** How long looks that are under way at the end may take. */
const LAST_LOOK_MS = 2_000;
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
  // with a table of its own in the journal, for which there may be no room
  const etcds = await startWhenBound(() => etcdsOf(options, claims), boundBy(options));
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

async function startServing(
  options: NodeAgentOptions,
  { watch, store, claims }: FollowedNode,
  etcds: EtcdSides | undefined,
): Promise<Agent> {
  const { node, refusalsNameAll = false } = options;
  return await startWhenBound(
    () =>
      startAgent({
        ...options,
        claimSource: etcds?.claimSource ?? claims,
        ...(etcds && { sharedNetworks: etcds }),
        blockSource: blocksOf(watch, { statuses: { node, store }, refusalsNameAll }),
        notReady: () => (watch.isSynced ? undefined : notLoadedWords(node)),
      }),
    boundBy(options),
  );
}

function boundBy({ socketPath, signal, clock, log, runtimeRecords }: NodeAgentOptions) {
  return { socketPath, signal, clock, log, runtimeRecords, mark: markFileOf(socketPath) };
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
    process: await beginProcess(database, options.random),
    rules: { certificates, provenOnly: true },
    journalled: new KnownEtcds<EtcdAccess>(database),
  });
}

function blocksOf(
  watch: NodeInformers,
  about: Required<Pick<BlockSource, "statuses" | "refusalsNameAll">>,
): BlockSource & Required<Pick<BlockSource, "wantNamespaces">> {
  return {
    ...about,
    get isSynced() {
      return watch.areBlocksSynced;
    },
    blocks: () => watch.blocks(),
    pool: (name) => watch.pool(name),
    pools: () => watch.pools(),
    factsOf: (pod) => watch.factsOf(pod),
    wantNamespaces: () => watch.followNamespaces(),
    ownNode: () => watch.ownNode(),
    ownersOf: (pool) => watch.ownersOf(pool),
  };
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
