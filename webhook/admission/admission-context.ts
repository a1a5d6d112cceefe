// SPDX-License-Identifier: Apache-2.0

import type { Refusal } from "../../allocator/base/errors.ts";
import { isRefusal, refuse } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Family } from "../../allocator/ip/address.ts";
import type { ForeignChoice } from "../../allocator/manifest/foreign-requests.ts";
import {
  isName,
  type KubeObject,
  malformedField,
  readObject,
} from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { ClusterState, NamespaceState } from "../../allocator/model/cluster-state.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import type { PodOwner } from "../../allocator/model/identity.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import type { ServiceFacts } from "../cluster-state/services.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { ReadAccess } from "./disclosure.ts";
import type { PendingClaimLimiter } from "./pending-claims.ts";

/** Where admitted objects are kept: on the embedded stack in a table of their own; in a cluster nowhere, because the API server has them. */
export interface ObjectStore {
  keep(object: KubeObject): Promise<void>;
  forget(kind: string, namespace: string, name: string): Promise<void>;
  /** Counts a workload as kept while its review reserves for it: a garbage collector would take the claims for unneeded. Returns what ends that. */
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

/** Whether what a pod says owns it is there. */
export interface Owners {
  /** The ReplicaSet, under its UID. */
  isThere(namespace: string, owner: PodOwner): Promise<boolean>;
}

/** Which nodes' CIDRs the installation gives. */
export interface NodeUse {
  /** Families of Nodes' `spec.podCIDRs`; none: it gives none. */
  readonly podCIDRs: readonly Family[];
  /** Cilium's `ipam.mode`; undefined: it gives Cilium's nodes nothing. */
  readonly cilium: string | undefined;
}

/** What the admission decisions work with. */
export interface AdmissionContext {
  /** Records are in an etcd that hosts without Kubernetes share: whoever reads a refusal has hosts and containers. */
  readonly onHosts?: boolean;
  readonly context: Context;
  readonly inventory: ClusterState;
  /**
   * Present on the embedded stack: admission is the only moment at which it hears of an object, so it keeps objects,
   * reserves for workloads, and stores pools and claims there and then. In a cluster controllers do that.
   */
  readonly embedded?: ObjectStore;
  /** Who may use which pool; present in a cluster. */
  readonly access?: PoolAccess;
  /** Present where Berth may read ReplicaSets: what names an owner that is not there is given no entry of a list. */
  readonly owners?: Owners;
  /** Who may read what refusals tell of others; absent: everybody may. */
  readonly readAccess?: ReadAccess;
  /** What becomes of pods that ask other systems for addresses; `warn` if absent. */
  readonly foreignRequests?: ForeignChoice;
  /** Which requests in other systems' words are for Berth; `all` of them if absent. */
  readonly dialects?: Dialects;
  /** How many claims wait for their pods; present in a cluster, where anybody may reach the webhook. */
  readonly pendingClaims?: PendingClaimLimiter;
  /** Waits for what the view has not heard of yet, and tells whether it has now; absent where the view is never behind. */
  readonly catchUp?: () => Promise<boolean>;
  /** Every address that is in use and not from Berth, as far as is known (ADR 0026); absent: nobody looks. */
  readonly occupants?: () => Iterable<Occupied>;
  /** What Services have; present in a cluster. */
  readonly services?: () => Promise<ServiceFacts>;
  /** What nodes are given of pools with `nodeCIDRs`; present in a cluster. */
  readonly nodeUse?: NodeUse;
  /** A claim lost what it was kept for: judge it soon instead of at the next pass. */
  readonly enqueueForGc: (claim: Claim) => void;
}

/** Of any name, and of what one is made of (RFC 1123). */
const NAME_LIMIT = 253;

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
  // the API server looks at it after the webhooks, and cuts what it makes a name of
  if (object.metadata.generateName.length > NAME_LIMIT) {
    return refuse("OBJECT_INVALID", `metadata.generateName has at most ${NAME_LIMIT} characters`);
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
    const odd = malformedField(object);
    if (odd !== undefined) return refuse("OBJECT_INVALID", odd, { kind: object.kind });
    if (CLUSTER_SCOPED.has(object.kind) || object.metadata.namespace !== "") return undefined;
    return refuse("OBJECT_INVALID", "the object has no namespace", { kind: object.kind });
  }
  return refuse(
    "OBJECT_INVALID",
    `this webhook decides about ${kinds.join(", ")}, and the object is of kind ${object.kind}; install the webhook configurations from the chart`,
    {
      kind: object.kind,
    },
  );
}

/**
 * Why no pod can come to be in the namespace: the API server asks no webhook about such a pod, but anybody else may, and
 * addresses would be held for it. On the embedded stack every namespace is there.
 */
export function closedNamespace(
  { embedded }: Pick<AdmissionContext, "embedded">,
  name: string,
  known: NamespaceState | undefined,
): Refusal | undefined {
  if (embedded !== undefined || (known !== undefined && known.terminating !== true)) return undefined;
  const words =
    known === undefined
      ? `namespace ${name} does not exist; create it first`
      : `namespace ${name} is being deleted; create the pod in another one`;
  return refuse("CLAIM_REFUSED", words, { namespace: name });
}
