// SPDX-License-Identifier: Apache-2.0

import { openKubernetesStore } from "../../allocator/store/kubernetes/store.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { PODS } from "../../kube/api/resource.ts";
import { DONE, type Outcome, WorkQueue } from "../../kube/controller/workqueue.ts";
import { WatchMetrics } from "../../kube/watch/watch-metrics.ts";
import type { Agent } from "./agent.ts";
import type { NodePod, PodName } from "./claims/cluster/node-cache.ts";
import { NodeClaims } from "./claims/cluster/node-claims.ts";
import { NodeInformers } from "./claims/cluster/node-informers.ts";
import { nodePod } from "./claims/cluster/node-projections.ts";
import { RecordedSandboxes } from "./claims/cluster/recorded-sandboxes.ts";
import { StatusWriter } from "./claims/cluster/status-writer.ts";
import { linuxHost } from "./journal/host.ts";
import { isStillThere } from "./journal/runtime-records.ts";
import type { NodeAgentOptions } from "./node-agent-options.ts";

/** An ADD may wait for a status that is being written: rather write it once more than make a pod wait for long. */
const CALL_MS = 4_000;
/** The watch of pods may be behind that of claims for a moment. */
const POD_UNSEEN_MS = 1_000;
/** A look at a claim waits while an ADD has its turn. */
const LOOKS_AT_ONCE = 16;

/** What is known of the node's claims and pods, and what is done about a claim that changes. */
export interface FollowedNode {
  readonly watch: NodeInformers;
  readonly store: Store;
  readonly queue: WorkQueue;
  readonly claims: NodeClaims;
  /** Claims are looked at from now on: this agent has the socket. */
  serving(agent: Agent): void;
}

export function followNode(options: NodeAgentOptions, connection: Connection): FollowedNode {
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

/** Brings the claim's status in line with the journal. */
async function look(claim: string, started: Promise<Agent>, claims: NodeClaims): Promise<Outcome> {
  const agent = await started;
  await agent.unlessInUse(claim, (...journal) => claims.settle(claim, ...journal));
  await claims.report(claim);
  return DONE;
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
