// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../allocator/base/errors.ts";
import {
  type KubeObject,
  podState,
  readObject,
  workloadState,
} from "../../allocator/manifest/kubernetes-object.ts";
import type {
  ClusterState,
  NamespaceState,
  ObjectHandler,
  PodState,
  WorkloadAnswer,
  WorkloadRef,
} from "../../allocator/model/cluster-state.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import type { ObjectStore } from "../../webhook/admission/admission-context.ts";
import type { Json } from "../support/objects.ts";
import type { Process } from "./process.ts";

interface Listeners {
  /** An object is about to come, change or go. */
  readonly beforeChange: () => void;
  /** A pod exists from now on: scheduler and kubelet hear of it, whatever its client was told. */
  readonly podKept: (pod: KubeObject) => void;
}

/** The objects of the API server, and which nodes are fenced. What was deleted is known to have been there. */
export class Cluster {
  readonly fenced = new Set<string>();
  readonly #objects = new Map<string, KubeObject | "deleted">(); // kind/namespace/name -> object
  readonly #listeners: Listeners;
  readonly #handlers = new Set<ObjectHandler>();

  constructor(listeners: Listeners) {
    this.#listeners = listeners;
  }

  find(kind: string, namespace: string, name: string): KubeObject | "deleted" | undefined {
    return this.#objects.get(idOf(kind, namespace, name));
  }

  /** What is there now, in the order in which it came to be. */
  all(kind: string): KubeObject[] {
    return [...this.#objects.values()]
      .filter((object) => object !== "deleted")
      .filter((o) => o.kind === kind);
  }

  /**
   * As the API server writes: another object of the name stays, and so does a newer state of the same one; an update
   * of what was deleted is not found.
   */
  keep(object: KubeObject): "kept" | "not kept" {
    const { namespace, name, uid } = object.metadata;
    const there = this.find(object.kind, namespace, name);
    const fresh = generationOf(object) === 1;
    if (there === undefined || there === "deleted") {
      if (!fresh) return "not kept";
    } else if (there.metadata.uid !== uid || generationOf(there) >= generationOf(object)) {
      return "not kept";
    }
    this.#listeners.beforeChange();
    this.#objects.set(idOf(object.kind, namespace, name), object);
    this.#tell(object.kind, namespace, name);
    if (object.kind === "Pod" && fresh) this.#listeners.podKept(object);
    return "kept";
  }

  forget(kind: string, namespace: string, name: string, uid: string): "deleted" | "not found" {
    const there = this.find(kind, namespace, name);
    if (there === undefined || there === "deleted" || there.metadata.uid !== uid) return "not found";
    this.#listeners.beforeChange();
    this.#objects.set(idOf(kind, namespace, name), "deleted");
    this.#tell(kind, namespace, name);
    return "deleted";
  }

  onChange(handler: ObjectHandler): () => void {
    this.#handlers.add(handler);
    return () => void this.#handlers.delete(handler);
  }

  #tell(kind: string, namespace: string, name: string): void {
    for (const handler of this.#handlers) handler(kind, `${namespace}/${name}`);
  }

  pod(namespace: string, name: string): PodState | undefined {
    const object = this.find("Pod", namespace, name);
    return object === undefined || object === "deleted" ? undefined : podFactsOf(object);
  }

  workload({ apiVersion, kind, namespace, name }: WorkloadRef): WorkloadAnswer {
    const object = this.find(kind, namespace, name);
    if (object === undefined) return "never admitted";
    if (object === "deleted") return undefined;
    return isSameGroup(object.apiVersion, apiVersion) ? workloadFactsOf(object) : "unknown";
  }
}

/** Objects do not change: what was read of one is read once. */
function remembered<T>(read: (object: KubeObject) => T): (object: KubeObject) => T {
  const known = new WeakMap<KubeObject, T>();
  return (object) => {
    const facts = known.get(object) ?? read(object);
    known.set(object, facts);
    return facts;
  };
}

const podFactsOf = remembered(podState);
const workloadFactsOf = remembered(workloadState);

function idOf(kind: string, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

/** How often what the object wants was changed, from 1. */
function generationOf(object: KubeObject): number {
  return object.json.at("metadata").count("generation", 1);
}

/** The object of that JSON, which is known to be one. */
export function objectOf(json: Json): KubeObject {
  const object = readObject(json);
  if (isRefusal(object)) throw new TypeError(object.message);
  return object;
}

/** Most reads are answered at once: they are many, and the few that take long meet everything all the same. */
const SLOW_SHARE = 0.25;

/** The cluster as one process has it; without `admittedWith`, as on one host: the review that keeps a pod has named it in its hold before. */
export class RemoteCluster implements ClusterState, ObjectStore {
  readonly onChange: (handler: ObjectHandler) => () => void;
  readonly #cluster: Cluster;
  readonly #process: Process;

  constructor(cluster: Cluster, process: Process) {
    this.#cluster = cluster;
    this.#process = process;
    this.onChange = (handler) => cluster.onChange(handler);
  }

  async pod(namespace: string, name: string): Promise<PodState | undefined> {
    return await this.#read(
      () => `pod ${name}`,
      () => this.#cluster.pod(namespace, name),
    );
  }

  async workload(ref: WorkloadRef): Promise<WorkloadAnswer> {
    return await this.#read(
      () => `${ref.kind} ${ref.name}`,
      () => this.#cluster.workload(ref),
    );
  }

  async namespace(name: string): Promise<NamespaceState> {
    return { name, labels: { "kubernetes.io/metadata.name": name }, annotations: {} };
  }

  async fenced(node: string): Promise<boolean> {
    return await this.#read(
      () => `whether ${node} is fenced`,
      () => this.#cluster.fenced.has(node),
    );
  }

  async keep(object: KubeObject): Promise<void> {
    await this.#process.call({
      what: () => `keep ${object.kind} ${object.metadata.name}/${object.metadata.uid}`,
      act: () => this.#cluster.keep(object),
      tell: (outcome) => outcome,
    });
  }

  /** Of the object that is there now: a deletion has its uid for a precondition. */
  async forget(kind: string, namespace: string, name: string): Promise<void> {
    const there = this.#cluster.find(kind, namespace, name);
    const uid = there === undefined || there === "deleted" ? "" : there.metadata.uid;
    await this.#process.call({
      what: () => `forget ${kind} ${name}/${uid}`,
      act: () => this.#cluster.forget(kind, namespace, name, uid),
      tell: (outcome) => outcome,
    });
  }

  async #read<T>(what: () => string, act: () => T): Promise<T> {
    if (!this.#process.post.cut && this.#process.random.fraction() >= SLOW_SHARE) return act();
    return await this.#process.call({ what: () => `read ${what()}`, act, tell: describe });
  }
}

function describe(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value ?? "none");
  return "uid" in value ? String(value.uid) : "found";
}
