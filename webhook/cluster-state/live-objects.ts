// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import { LastMade } from "../../allocator/base/last-made.ts";
import { ASSIGNED_TOKEN } from "../../allocator/manifest/annotations.ts";
import { isReadWith } from "../../allocator/manifest/dialects.ts";
import type {
  NamespaceState,
  PodState,
  WorkloadAnswer,
  WorkloadRef,
  WorkloadState,
} from "../../allocator/model/cluster-state.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import { Client } from "../../kube/api/client.ts";
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
import { isGroupServed } from "./discovery.ts";
import type { ObservedNode } from "./observed-objects.ts";
import type { ByToken } from "./pods-by-token.ts";
import { namespaceFacts, observedNode, observedPod, observedWorkload } from "./projections.ts";

/** A pod is of 10 KB or so, and may be a hundred times as large. */
const PAGE_SIZE = 100;

const WORKLOADS: readonly Resource[] = [...APPS, ...KRUISE, JOBS];

/** Workloads and namespaces that are remembered: whoever lets go asks for one once for each of its claims, of which a list may have a thousand. */
const REMEMBERED = 16;

/** An item, and of which of the resources it is. */
interface FoundObject {
  readonly resource: Resource;
  readonly item: KubeItem;
}

/** What the API server has at this moment, read one by one. Throws what kube/api/client.ts throws. */
export class LiveObjects {
  readonly #connection: Connection;
  readonly #isRead: (key: string) => boolean;
  readonly #workloads = new LastMade<WorkloadState>(REMEMBERED);
  readonly #namespaces = new LastMade<NamespaceState>(REMEMBERED);

  constructor(connection: Connection, isRead: (key: string) => boolean = isReadWith({})) {
    this.#connection = connection;
    this.#isRead = isRead;
  }

  async pod(namespace: string, name: string): Promise<PodState | undefined> {
    const item = await this.#get(PODS, { namespace, name });
    return item && observedPod(item, this.#isRead);
  }

  async workload(ref: WorkloadRef): Promise<Exclude<WorkloadAnswer, "never admitted">> {
    const resources = WORKLOADS.filter(
      (one) => one.kind === ref.kind && isSameGroup(apiVersionOf(one), ref.apiVersion),
    );
    if (resources.length === 0) return "unknown";
    const found = await this.find(resources, { namespace: ref.namespace, name: ref.name });
    if (typeof found !== "object") return found;
    const { resource, item } = found;
    const key = `${apiVersionOf(resource)} ${ref.kind} ${ref.namespace}/${ref.name}`;
    return this.#workloads.of(
      key,
      versionOf(item),
      () => observedWorkload(resource, item, this.#isRead).facts,
    );
  }

  /**
   * By the tokens that they were admitted with, those of a namespace that have not started: a pod that runs had its addresses, so
   * its claim has its name.
   */
  async waitingByToken(namespace: string): Promise<ByToken> {
    const waiting = { namespace, fieldSelector: "status.phase=Pending" };
    const found = new Map<string, PodState>();
    for await (const { items } of new Client(this.#connection, PODS).pages(waiting, PAGE_SIZE)) {
      for (const item of items) {
        const pod = observedPod(item, this.#isRead);
        const token = pod.annotations[ASSIGNED_TOKEN];
        if (token !== undefined) found.set(token, pod);
      }
    }
    return found;
  }

  async namespace(name: string): Promise<NamespaceState | undefined> {
    const item = await this.#get(NAMESPACES, { name });
    return item && this.#namespaces.of(name, versionOf(item), () => namespaceFacts(item));
  }

  async node(name: string): Promise<ObservedNode | undefined> {
    const item = await this.#get(NODES, { name });
    return item && observedNode(item);
  }

  /** The first that is there; `unknown` where one of them may be there in a version that is not read. */
  async find(
    resources: readonly Resource[],
    place: ObjectName,
  ): Promise<FoundObject | "unknown" | undefined> {
    let absent: "unknown" | undefined;
    for (const resource of resources) {
      const item = await this.#served(resource, place);
      if (item === "unknown") absent = item;
      else if (item !== undefined) return { resource, item };
    }
    return absent;
  }

  async #get(resource: Resource, place: ObjectName): Promise<KubeItem | undefined> {
    return await new Client(this.#connection, resource).get(place);
  }

  /** `unknown` where its group is served and this version of it is not: the object may be there in another one. */
  async #served(resource: Resource, place: ObjectName): Promise<KubeItem | "unknown" | undefined> {
    try {
      return await this.#get(resource, place);
    } catch (error) {
      const notServed = error instanceof BerthError && error.details["status"] === "404";
      if (!notServed) throw error;
      return (await isGroupServed(this.#connection, resource)) ? "unknown" : undefined;
    }
  }
}

function versionOf({ metadata: { uid, resourceVersion } }: KubeItem): string {
  return `${uid} ${resourceVersion}`;
}
