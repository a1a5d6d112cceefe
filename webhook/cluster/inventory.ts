// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/errors.ts";
import type { Inventory, NamespaceFacts, PodFacts, WorkloadFacts } from "../../allocator/inventory.ts";
import type { Clock } from "../../allocator/ports.ts";
import { Client } from "../../kube/client.ts";
import type { Connection } from "../../kube/connection.ts";
import type { Item, Place, Resource } from "../../kube/resource.ts";
import { isGroupServed } from "./discovery.ts";
import { NodeAbsences } from "./node-absences.ts";
import { namespaceFacts, nodeSeen, podSeen, workloadSeen } from "./projections.ts";
import { APPS, KRUISE, NAMESPACES, NODES, PODS } from "./resources.ts";
import type { RunningWatches } from "./watches.ts";

export interface ClusterInventory {
  /** From the watches: costs nothing, may lag, and so must not decide to let anything go. NOT_READY before they are synced. */
  readonly cached: Inventory;
  /** From the API server, at each question. */
  readonly live: Inventory;
  /** For admission: what decides whether a claim may pass on is live, the rest is from the watches where they have it. */
  readonly admission: Inventory;
}

export interface InventoryDeps {
  readonly watches: RunningWatches;
  readonly connection: Connection;
  readonly clock: Pick<Clock, "monotonic">;
}

/** The inventories of a cluster. They share what this process has seen of nodes that went. */
export function clusterInventory({ watches, connection, clock }: InventoryDeps): ClusterInventory {
  const absences = new NodeAbsences(clock);
  watches.nodes.onChange((node, now) => {
    if (now === undefined) absences.absent(node);
    else absences.present(node);
  });
  const cached = new CachedInventory(watches, absences);
  const live = new LiveInventory(connection, absences);
  const admission: Inventory = {
    pod: (namespace, name) => live.pod(namespace, name),
    fenced: (node) => live.fenced(node),
    workload: async (kind, namespace, name) =>
      cached.workloadSeen(kind, namespace, name) ?? (await live.workload(kind, namespace, name)),
    namespace: async (name) => watches.namespaces.get(name) ?? (await live.namespace(name)),
  };
  return { cached, live, admission };
}

class CachedInventory implements Inventory {
  readonly #watches: RunningWatches;
  readonly #absences: NodeAbsences;

  constructor(watches: RunningWatches, absences: NodeAbsences) {
    this.#watches = watches;
    this.#absences = absences;
  }

  async pod(namespace: string, name: string): Promise<PodFacts | undefined> {
    return this.#whole().pods.get(`${namespace}/${name}`);
  }

  async workload(
    kind: string,
    namespace: string,
    name: string,
  ): Promise<WorkloadFacts | "unknown" | undefined> {
    const known = this.#whole().workloads.some((watch) => watch.kind === kind);
    return known ? this.workloadSeen(kind, namespace, name) : "unknown";
  }

  async namespace(name: string): Promise<NamespaceFacts | undefined> {
    return this.#whole().namespaces.get(name);
  }

  async fenced(node: string): Promise<boolean> {
    const seen = this.#whole().nodes.get(node);
    if (seen !== undefined) return seen.fenced;
    return node !== "" && this.#absences.absent(node);
  }

  /** Undefined says nothing before the watches are synced. */
  workloadSeen(kind: string, namespace: string, name: string): WorkloadFacts | undefined {
    for (const watch of this.#watches.workloads) {
      const seen = watch.kind === kind ? watch.reflector.get(`${namespace}/${name}`) : undefined;
      if (seen !== undefined) return seen.facts;
    }
    return undefined;
  }

  #whole(): RunningWatches {
    if (this.#watches.isSynced()) return this.#watches;
    throw new BerthError("NOT_READY", "what is in the cluster is not loaded yet");
  }
}

const WORKLOADS: readonly Resource[] = [...APPS, ...KRUISE];

class LiveInventory implements Inventory {
  readonly #connection: Connection;
  readonly #absences: NodeAbsences;

  constructor(connection: Connection, absences: NodeAbsences) {
    this.#connection = connection;
    this.#absences = absences;
  }

  async pod(namespace: string, name: string): Promise<PodFacts | undefined> {
    const item = await this.#get(PODS, { namespace, name });
    return item && podSeen(item);
  }

  async workload(
    kind: string,
    namespace: string,
    name: string,
  ): Promise<WorkloadFacts | "unknown" | undefined> {
    const resources = WORKLOADS.filter((resource) => resource.kind === kind);
    let absent: "unknown" | undefined = resources.length === 0 ? "unknown" : undefined;
    for (const resource of resources) {
      const found = await this.#workload(resource, { namespace, name });
      if (found === "unknown") absent = found;
      else if (found !== undefined) return found;
    }
    return absent;
  }

  async namespace(name: string): Promise<NamespaceFacts | undefined> {
    const item = await this.#get(NAMESPACES, { name });
    return item && namespaceFacts(item);
  }

  async fenced(node: string): Promise<boolean> {
    if (node === "") return false;
    const item = await this.#get(NODES, { name: node });
    if (item === undefined) return this.#absences.absent(node);
    this.#absences.present(node);
    return nodeSeen(item).fenced;
  }

  async #get(resource: Resource, place: Place): Promise<Item | undefined> {
    return await new Client(this.#connection, resource).get(place);
  }

  /** `unknown` where its group is served and this version of it is not: the object may be there in another one. */
  async #workload(resource: Resource, place: Place): Promise<WorkloadFacts | "unknown" | undefined> {
    try {
      const item = await this.#get(resource, place);
      return item && workloadSeen(resource, item).facts;
    } catch (error) {
      const notServed = error instanceof BerthError && error.details["status"] === "404";
      if (!notServed) throw error;
      return (await isGroupServed(this.#connection, resource)) ? "unknown" : undefined;
    }
  }
}
