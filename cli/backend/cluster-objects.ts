// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { Fields, type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type {
  NamespaceState,
  PodState,
  WorkloadAnswer,
  WorkloadRef,
} from "../../allocator/model/cluster-state.ts";
import { Client, type Selection } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import {
  APPS,
  apiVersionOf,
  CONFIGURATIONS,
  DAEMONSETS,
  JOBS,
  KRUISE,
  type KubeItem,
  NAMESPACES,
  NODES,
  type ObjectName,
  PODS,
  type Resource,
} from "../../kube/api/resource.ts";
import { LiveObjects } from "../../webhook/cluster-state/live-objects.ts";
import { PodsByToken } from "../../webhook/cluster-state/pods-by-token.ts";
import type { Objects } from "./backend.ts";
import { ifAllowed } from "./if-allowed.ts";

const PAGE_SIZE = 500;

const RESOURCES: readonly Resource[] = [
  ...[PODS, NODES, NAMESPACES, ...APPS, ...KRUISE, JOBS],
  ...[DAEMONSETS, ...CONFIGURATIONS],
];

/** Objects as the API server has them at this moment, read one by one. Throws what kube/api/client.ts throws. */
export class ClusterObjects implements Objects {
  readonly #connection: Connection;
  readonly #live: LiveObjects;
  readonly #waiting: PodsByToken;

  constructor(connection: Connection) {
    const live = new LiveObjects(connection);
    this.#connection = connection;
    this.#live = live;
    this.#waiting = new PodsByToken((namespace) => live.waitingByToken(namespace));
  }

  async object(kind: string, namespace: string, name: string): Promise<KubeObject | undefined> {
    for (const resource of resourcesOf(kind)) {
      const place: ObjectName = resource.namespaced ? { namespace, name } : { name };
      const found = await this.#live.find([resource], place);
      if (typeof found === "object") return objectOf(found.item, resource);
    }
    return undefined;
  }

  async objects(kind: string, namespace?: string): Promise<readonly KubeObject[]> {
    const objects: KubeObject[] = [];
    for await (const object of this.each(kind, namespace)) objects.push(object);
    return objects;
  }

  each(kind: string, namespace?: string): AsyncIterable<KubeObject> {
    return this.#listed(kind, namespace === undefined ? {} : { namespace });
  }

  async *#listed(kind: string, selection: Selection): AsyncGenerator<KubeObject, void, void> {
    for (const resource of resourcesOf(kind)) {
      const client = new Client(this.#connection, resource);
      try {
        for await (const { items } of client.pages(selection, PAGE_SIZE))
          for (const item of items) yield objectOf(item, resource);
      } catch (error) {
        if (!isNotServed(error, resource)) throw error;
      }
    }
  }

  async pod(namespace: string, name: string): Promise<PodState | undefined> {
    return await this.#live.pod(namespace, name);
  }

  /** None for who may not list pods: then only time says that one does not come. */
  async admittedWith(namespace: string, token: string): Promise<PodState | undefined> {
    return await ifAllowed(() => this.#waiting.find(namespace, token));
  }

  async workload(ref: WorkloadRef): Promise<WorkloadAnswer> {
    return await this.#live.workload(ref);
  }

  async namespace(name: string): Promise<NamespaceState | undefined> {
    return await this.#live.namespace(name);
  }

  /** By taint or an operator's word. That a node has been absent for long enough, one look cannot tell. */
  async fenced(node: string): Promise<boolean> {
    return node !== "" && (await this.#live.node(node))?.fenced === true;
  }
}

function resourcesOf(kind: string): readonly Resource[] {
  return RESOURCES.filter((resource) => resource.kind === kind);
}

/** OpenKruise's kinds are there only where it is installed. */
function isNotServed(error: unknown, resource: Resource): boolean {
  const isMissing = error instanceof BerthError && error.details["status"] === "404";
  return isMissing && KRUISE.includes(resource);
}

/** Items of a list do not say what they are; who manages which field is nothing to look at. */
function objectOf(item: KubeItem, what: Resource): KubeObject {
  const { managedFields: _, ...metadata } = new Fields(item).at("metadata").value;
  const object = readObject({ ...item, apiVersion: apiVersionOf(what), kind: what.kind, metadata });
  if (!isRefusal(object)) return object;
  throw new BerthError("INTERNAL", object.message);
}
