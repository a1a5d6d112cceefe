// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import {
  Fields,
  type KubeObject,
  podState,
  readObject,
  workloadState,
} from "../../allocator/manifest/kubernetes-object.ts";
import type {
  NamespaceState,
  PodState,
  WorkloadRef,
  WorkloadState,
} from "../../allocator/model/cluster-state.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import { Client, type Selection } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import {
  APPS,
  apiVersionOf,
  JOBS,
  KRUISE,
  type KubeItem,
  NAMESPACES,
  NODES,
  type ObjectName,
  PODS,
  type Resource,
} from "../../kube/api/resource.ts";
import type { Objects } from "./backend.ts";
import { fencedBy } from "./node-state.ts";

const PAGE_SIZE = 500;

const RESOURCES: readonly Resource[] = [PODS, NODES, NAMESPACES, ...APPS, ...KRUISE, JOBS];

/** Objects as the API server has them at this moment, read one by one. Throws what kube/api/client.ts throws. */
export class ClusterObjects implements Objects {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async object(kind: string, namespace: string, name: string): Promise<KubeObject | undefined> {
    for (const client of this.#clients(kind)) {
      const place: ObjectName = client.resource.namespaced ? { namespace, name } : { name };
      const item = await served(client, () => client.get(place));
      if (item !== undefined) return objectOf(item, client.resource);
    }
    return undefined;
  }

  async objects(kind: string, namespace?: string): Promise<readonly KubeObject[]> {
    const selection: Selection = namespace === undefined ? {} : { namespace };
    const objects: KubeObject[] = [];
    for (const client of this.#clients(kind)) {
      const all = await served(client, () => itemsOf(client, selection));
      objects.push(...(all ?? []).map((item) => objectOf(item, client.resource)));
    }
    return objects;
  }

  async pod(namespace: string, name: string): Promise<PodState | undefined> {
    const object = await this.object("Pod", namespace, name);
    return object && podState(object);
  }

  async workload({
    apiVersion,
    kind,
    namespace,
    name,
  }: WorkloadRef): Promise<WorkloadState | "unknown" | undefined> {
    const clients = this.#clients(kind).filter(({ resource }) =>
      isSameGroup(apiVersionOf(resource), apiVersion),
    );
    for (const client of clients) {
      const item = await served(client, () => client.get({ namespace, name }));
      if (item !== undefined) return workloadState(objectOf(item, client.resource));
    }
    return clients.length === 0 ? "unknown" : undefined;
  }

  async namespace(name: string): Promise<NamespaceState | undefined> {
    const object = await this.object("Namespace", "", name);
    return object && { name, labels: object.metadata.labels, annotations: object.metadata.annotations };
  }

  /** By taint or an operator's word. That a node has been absent for long enough, one look cannot tell. */
  async fenced(node: string): Promise<boolean> {
    const object = node === "" ? undefined : await this.object("Node", "", node);
    return object !== undefined && fencedBy(object) !== undefined;
  }

  #clients(kind: string): readonly Client[] {
    const resources = RESOURCES.filter((resource) => resource.kind === kind);
    return resources.map((resource) => new Client(this.#connection, resource));
  }
}

async function itemsOf(client: Client, selection: Selection): Promise<KubeItem[]> {
  const all: KubeItem[] = [];
  for await (const { items } of client.pages(selection, PAGE_SIZE)) all.push(...items);
  return all;
}

/** OpenKruise's kinds are there only where it is installed. */
async function served<T>({ resource }: Client, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    const missing = error instanceof BerthError && error.details["status"] === "404";
    if (missing && KRUISE.includes(resource)) return undefined;
    throw error;
  }
}

/** Items of a list do not say what they are; who manages which field is nothing to look at. */
function objectOf(item: KubeItem, what: Resource): KubeObject {
  const { managedFields: _, ...metadata } = new Fields(item).at("metadata").value;
  const object = readObject({ ...item, apiVersion: apiVersionOf(what), kind: what.kind, metadata });
  if (!isRefusal(object)) return object;
  throw new BerthError("INTERNAL", object.message);
}
