// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { isReadWith } from "../../allocator/manifest/dialects.ts";
import type {
  ClusterState,
  NamespaceState,
  ObjectHandler,
  PodState,
  WorkloadAnswer,
  WorkloadRef,
  WorkloadState,
} from "../../allocator/model/cluster-state.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import type { NodeFacts } from "../../allocator/model/node-terms.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { apiVersionOf, JOBS } from "../../kube/api/resource.ts";
import type { Informers, RunningInformers } from "./informers.ts";
import { LiveObjects } from "./live-objects.ts";
import { NodeAbsences } from "./node-grace.ts";
import { PodsByToken } from "./pods-by-token.ts";

export interface ClusterStates {
  /** From the watches: costs nothing, but may lag, so it must never decide to release anything. NOT_READY before they are synced. */
  readonly cached: ClusterState;
  /** From the API server, at each question. */
  readonly live: ClusterState;
  /** For admission: what decides whether a claim may pass on is live, the rest is from the watches where they have it. */
  readonly admission: ClusterState;
}

interface ClusterStateDeps {
  readonly watches: RunningInformers;
  readonly connection: Connection;
  readonly clock: Pick<Clock, "monotonic">;
  /** `all` if absent. */
  readonly dialects?: Dialects;
}

/** The inventories of a cluster. They share what this process has seen of nodes that went. */
export function clusterStates({ watches, connection, clock, dialects }: ClusterStateDeps): ClusterStates {
  const absences = new NodeAbsences(clock);
  absences.follow(watches.nodes);
  const cached = new CachedInventory(watches, absences);
  const live = new LiveInventory(connection, absences, dialects);
  const admission: ClusterState = {
    nodes: cached.nodes,
    admittedWith: async (namespace, token) =>
      cached.admittedSeen(namespace, token) ?? (await live.admittedWith(namespace, token)),
    pod: (namespace, name) => live.pod(namespace, name),
    fenced: (node) => live.fenced(node),
    workload: async (ref) => cached.workloadSeen(ref) ?? (await live.workload(ref)),
    namespace: async (name) => {
      const seen = watches.namespaces.get(name);
      // one of the name may be there again
      return seen === undefined || seen.terminating === true ? await live.namespace(name) : seen;
    },
  };
  return { cached, live, admission };
}

class CachedInventory implements ClusterState {
  readonly nodes: () => Iterable<NodeFacts> | undefined;
  readonly onChange: (handler: ObjectHandler) => () => void;
  readonly #watches: RunningInformers;
  readonly #absences: NodeAbsences;

  constructor(informers: RunningInformers, absences: NodeAbsences) {
    this.#watches = informers;
    this.#absences = absences;
    const { nodes } = informers;
    this.nodes = () => (nodes.isSynced ? valuesOf(nodes.all()) : undefined);
    this.onChange = (handler) => onObjectChange(informers, handler);
  }

  async pod(namespace: string, name: string): Promise<PodState | undefined> {
    return this.#whole().pods.get(`${namespace}/${name}`);
  }

  async admittedWith(namespace: string, token: string): Promise<PodState | undefined> {
    this.#whole();
    return this.admittedSeen(namespace, token);
  }

  /** Undefined says nothing before the watches are synced. */
  admittedSeen(namespace: string, token: string): PodState | undefined {
    return this.#watches.pods.by("token", token).find((pod) => pod.namespace === namespace);
  }

  /**
   * Jobs are not watched, for there are many: none is to be seen here, so that whoever lets go asks the live one. Of a kind
   * that cannot be listed nobody knows what there is.
   */
  async workload(ref: WorkloadRef): Promise<WorkloadAnswer> {
    const { workloads } = this.#whole();
    const known = workloads.some((watch) => isOf(watch, ref) && watch.isListed()) || isOf(JOBS_SEEN, ref);
    return known ? this.workloadSeen(ref) : "unknown";
  }

  async namespace(name: string): Promise<NamespaceState | undefined> {
    return this.#whole().namespaces.get(name);
  }

  async fenced(node: string): Promise<boolean> {
    const seen = this.#whole().nodes.get(node);
    if (seen !== undefined) return seen.fenced;
    return node !== "" && this.#absences.absent(node);
  }

  /** Undefined says nothing before the watches are synced. */
  workloadSeen(ref: WorkloadRef): WorkloadState | undefined {
    for (const watch of this.#watches.workloads) {
      const seen = isOf(watch, ref) ? watch.reflector.get(`${ref.namespace}/${ref.name}`) : undefined;
      if (seen !== undefined) return seen.facts;
    }
    return undefined;
  }

  #whole(): RunningInformers {
    if (this.#watches.isSynced()) return this.#watches;
    throw new BerthError("NOT_READY", "what is in the cluster is not loaded yet");
  }
}

/** Status of workloads, and what else nobody asks of namespaces here, changes often. */
function onObjectChange({ pods, workloads, namespaces }: Informers, handler: ObjectHandler): () => void {
  const ends = [
    pods.onChange((key) => handler("Pod", key)),
    ...workloads.map(({ kind, reflector }) =>
      reflector.onChange((key, now, before) => {
        if (!isDeepStrictEqual(now?.facts, before?.facts)) handler(kind, key);
      }),
    ),
    namespaces.onChange((name, now, before) => {
      if (!isDeepStrictEqual(now?.annotations ?? {}, before?.annotations ?? {})) handler("Namespace", name);
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

export function* valuesOf<T>(entries: Iterable<readonly [string, T]>): Generator<T, void, void> {
  for (const [, value] of entries) yield value;
}

const JOBS_SEEN = { kind: JOBS.kind, apiVersion: apiVersionOf(JOBS) };

function isOf(one: Pick<WorkloadRef, "kind" | "apiVersion">, ref: WorkloadRef): boolean {
  return one.kind === ref.kind && isSameGroup(one.apiVersion, ref.apiVersion);
}

class LiveInventory implements ClusterState {
  readonly #objects: LiveObjects;
  readonly #absences: NodeAbsences;
  readonly #waiting: PodsByToken;

  constructor(connection: Connection, absences: NodeAbsences, dialects: Dialects = {}) {
    const objects = new LiveObjects(connection, isReadWith(dialects));
    this.#objects = objects;
    this.#absences = absences;
    this.#waiting = new PodsByToken((namespace) => objects.waitingByToken(namespace));
  }

  async admittedWith(namespace: string, token: string): Promise<PodState | undefined> {
    return await this.#waiting.find(namespace, token);
  }

  async pod(namespace: string, name: string): Promise<PodState | undefined> {
    return await this.#objects.pod(namespace, name);
  }

  async workload(ref: WorkloadRef): Promise<WorkloadAnswer> {
    return await this.#objects.workload(ref);
  }

  async namespace(name: string): Promise<NamespaceState | undefined> {
    return await this.#objects.namespace(name);
  }

  async fenced(name: string): Promise<boolean> {
    if (name === "") return false;
    const node = await this.#objects.node(name);
    if (node === undefined) return this.#absences.absent(name);
    this.#absences.present(name);
    return node.fenced;
  }
}
