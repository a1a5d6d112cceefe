// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "../../allocator/claim.ts";
import type { Context } from "../../allocator/context.ts";
import type { Refusal } from "../../allocator/errors.ts";
import { isRefusal, refuse } from "../../allocator/errors.ts";
import type { Inventory, NamespaceFacts } from "../../allocator/inventory.ts";
import { isName, type KubeObject, misshapen, readObject } from "../../allocator/kube-object.ts";
import type { Holds } from "./holds.ts";
import type { AdmissionRequest } from "./review.ts";

/** Where admitted objects go: nowhere in a cluster, whose API server keeps them; onto the shelf on the embedded stack. */
export interface Keeper {
  keep(object: KubeObject): Promise<void>;
  forget(kind: string, namespace: string, name: string): Promise<void>;
  /** A workload counts as kept while its review reserves for it, or a reaper that passes takes that for waste. Returns the end of it. */
  expect?(object: KubeObject): () => void;
}

export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

/** Who may use pools with `authorization: ServiceAccount`. */
export interface PoolAccess {
  mayUse(account: ServiceAccount, pool: string): Promise<boolean>;
}

/** What the admission decisions work with. */
export interface Desk {
  readonly context: Context;
  readonly inventory: Inventory;
  /**
   * Present on the embedded stack: admission is the only moment at which it hears of an object, so it keeps objects,
   * reserves for workloads, and stores pools and claims there and then. In a cluster controllers do that.
   */
  readonly embedded?: Keeper;
  /** Who may use which pool; present in a cluster. */
  readonly access?: PoolAccess;
  /** How many claims wait for their pods; present in a cluster, where anybody may reach the webhook. */
  readonly holds?: Holds;
  /** Waits for what the view has not heard of yet, and tells whether it has now; absent where the view is never behind. */
  readonly catchUp?: () => Promise<boolean>;
  /** A claim lost what it was kept for: judge it soon instead of at the next pass. */
  readonly suspect: (claim: Claim) => void;
}

/** The object of a review, its namespace and name filled in from the request as the API server does. */
export function objectOf(request: AdmissionRequest, which: "object" | "oldObject"): KubeObject | Refusal {
  const object = readObject(request[which]);
  if (isRefusal(object)) return object;
  const namespace = request.namespace === "" ? object.metadata.namespace : request.namespace;
  const name = object.metadata.name === "" ? request.name : object.metadata.name;
  if ([name, namespace].some((part) => part !== "" && !isName(part))) {
    return refuse(
      "OBJECT_INVALID",
      "metadata.name and metadata.namespace are made of lower-case letters, digits, - and .",
    );
  }
  const { owner } = object.metadata;
  if (owner !== undefined && !isName(owner.name)) {
    return refuse(
      "OBJECT_INVALID",
      "the name of the owner that controls the object is made of lower-case letters, digits, - and .",
    );
  }
  return { ...object, metadata: { ...object.metadata, namespace, name } };
}

const CLUSTER_SCOPED: ReadonlySet<string> = new Set(["IPPool", "Namespace"]);

/** One of the kinds that the route is for, or the words for whoever configured the webhook wrongly. */
export function expectKind(object: KubeObject, kinds: readonly string[]): Refusal | undefined {
  if (kinds.includes(object.kind)) {
    const odd = misshapen(object);
    if (odd !== undefined) return refuse("OBJECT_INVALID", `${odd} must be an object`, { kind: object.kind });
    if (CLUSTER_SCOPED.has(object.kind) || object.metadata.namespace !== "") return undefined;
    return refuse("OBJECT_INVALID", "the object has no namespace", { kind: object.kind });
  }
  return refuse(
    "OBJECT_INVALID",
    `this webhook decides about ${kinds.join(", ")}, and the object is a ${object.kind}`,
    {
      kind: object.kind,
    },
  );
}

/** A namespace that the inventory does not know yet has the one label that every namespace has. */
export async function namespaceOf(inventory: Inventory, name: string): Promise<NamespaceFacts> {
  const known = await inventory.namespace(name);
  return known ?? { name, labels: { "kubernetes.io/metadata.name": name }, annotations: {} };
}
