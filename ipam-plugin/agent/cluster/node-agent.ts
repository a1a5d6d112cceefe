// SPDX-License-Identifier: Apache-2.0
import type { Clock, Logger, Metrics, Random } from "../../../allocator/ports.ts";
import type { Database } from "../../../allocator/store/database.ts";
import { openKubernetesStore } from "../../../allocator/store/kubernetes.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { Client } from "../../../kube/client.ts";
import type { Connection } from "../../../kube/connection.ts";
import { metered } from "../../../kube/metered-connection.ts";
import { WatchHealth } from "../../../kube/watch-health.ts";
import { DONE, type Outcome, WorkQueue } from "../../../kube/workqueue.ts";
import { type Agent, startAgent } from "../agent.ts";
import { gaugeOf } from "../measure.ts";
import { NodeClaims } from "./node-claims.ts";
import type { NodePod, PodName } from "./node-view.ts";
import { NodeWatch, nodePod, PODS } from "./node-watch.ts";
import { notLoadedWords } from "./search.ts";
import { StatusReports } from "./status-reports.ts";
import { Strays } from "./strays.ts";

export interface NodeAgentOptions {
  /** This node's name in the cluster. */
  readonly node: string;
  /** Closed with the agent. */
  readonly connection: Connection;
  /** Where the journal is kept; stays the caller's to close. */
  readonly database: Database;
  readonly socketPath: string;
  readonly bootId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface NodeAgent extends Agent {
  /** The claims are loaded: every ADD can be served. */
  readonly isReady: boolean;
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
 * know. Throws what startAgent throws.
 */
export async function startNodeAgent(options: NodeAgentOptions): Promise<NodeAgent> {
  const { node, clock, random, log, metrics } = options;
  const connection = metered(options.connection, metrics, clock);
  const impatient = withDeadline(connection, CALL_MS);
  const health = new WatchHealth(clock, metrics);
  const watch = new NodeWatch({ connection, node, clock, random, log, health });
  const store = openKubernetesStore({ connection: impatient, clock, random, log, metrics });
  const started = Promise.withResolvers<Agent>();
  const queue: WorkQueue = new WorkQueue({
    ...{ name: "claims", clock, random, log, concurrency: LOOKS_AT_ONCE, metrics },
    work: (claim) => look(claim, started.promise, claims),
  });
  const claims = new NodeClaims({
    ...{ node, clock, log, view: watch },
    reports: new StatusReports({ store, node, clock }),
    livePod: podsOf(impatient),
    suspect: (claim, afterMs) => queue.addAfter(claim, afterMs),
  });
  watch.onChange({
    claim: (claim, now) => {
      claims.changed(claim, now);
      queue.addAfter(claim, now !== undefined && isPodSeen(now, watch) ? 0 : POD_UNSEEN_MS);
    },
    pod: (changed) => {
      for (const claim of changed) queue.addAfter(claim, 0);
    },
  });
  const notReady = () => (watch.isSynced ? undefined : notLoadedWords(node));
  const agent = await startAgent({ ...options, mooring: claims, notReady });
  started.resolve(agent);
  const strays = new Strays({ view: watch, attached: () => agent.attached(), clock, log });
  gaugeOf(metrics, "berth_agent_claims", () => watch.size);
  gaugeOf(metrics, "berth_agent_stray_sandboxes", () => strays.find().length);
  gaugeOf(metrics, "berth_ready", () => (watch.isSynced ? 1 : 0));
  return inBackground(agent, { watch, queue, strays, connection, clock });
}

/** Brings the claim's status in line with the journal. */
async function look(claim: string, started: Promise<Agent>, claims: NodeClaims): Promise<Outcome> {
  const agent = await started;
  await agent.unlessInUse(claim, () => claims.settle(claim));
  await claims.report(claim);
  return DONE;
}

interface Works {
  readonly watch: NodeWatch;
  readonly queue: WorkQueue;
  readonly strays: Strays;
  readonly connection: Connection;
  readonly clock: Clock;
}

/**
 * Begins to follow the API server, now that the socket is its own. At the end it looks at no claim any more before it
 * gives the socket up: what the next process lists is newer than all that this one went by. The ADDs that it has taken
 * in go on until they are answered, and so do the watches that they wait for.
 */
function inBackground(agent: Agent, { watch, queue, strays, connection, clock }: Works): NodeAgent {
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
    stop.abort();
    connection.close();
    await Promise.all([running, looked]);
  };
  return {
    ...agent,
    get isReady() {
      return watch.isSynced;
    },
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}

function isPodSeen({ record }: Stored<"claim">, watch: NodeWatch): boolean {
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
