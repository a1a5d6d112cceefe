// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../base/ports.ts";
import type { PodOwner } from "./identity.ts";
import type { NodeFacts } from "./node-terms.ts";
import type { ReservedOrdinals } from "./ordinals.ts";

/** A Node object may be deleted and made again under a kubelet that goes on running: only after this its absence counts. */
export const NODE_GRACE_MS = 45_000;

/** A pod as far as addresses are concerned. */
export interface PodState {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Empty until it is scheduled. */
  readonly node: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  /** Its controller; absent: it has none. */
  readonly owner?: PodOwner;
  /** It is on its host's network and has no address of its own. */
  readonly onHostNetwork?: true;
  /** Its phase is Succeeded or Failed: it will never run again. That its sandbox is gone is for its node to say. */
  readonly ended: boolean;
  /** It has a deletionTimestamp: its containers are being stopped. */
  readonly deleting?: boolean;
}

/** Which workload. The name of a kind alone does not say what it is: other API groups have a StatefulSet, too. */
export interface WorkloadRef {
  /** As the owner reference has it; only its group counts. Empty in records that do not say it: any group. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** A workload whose pods have identities: a StatefulSet, an indexed Job, or a Deployment with a set of addresses. */
export interface WorkloadState {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly replicas: number;
  /** `spec.ordinals.start` of a StatefulSet; 0 elsewhere. */
  readonly start: number;
  /** What OpenKruise's StatefulSet leaves out, in order, and apart from each other. Absent: nothing. */
  readonly reserved?: readonly ReservedOrdinals[];
  /** There are more of them than are read: any ordinal from `start` on may be one of its pods'. */
  readonly isCutOff?: true;
  /** Entries of the list of addresses that its pods share; absent when the list cannot be read. */
  readonly slots?: number;
  /** Of one with `slots`: how many pods more and less there may be while they are exchanged, as it says that. */
  readonly rolling?: { readonly maxSurge?: unknown; readonly maxUnavailable?: unknown };
  /** Of its pod template: what its pods ask for by themselves. */
  readonly annotations: Labels;
  /** Its pods are on their hosts' networks and are given no addresses. */
  readonly hostNetwork: boolean;
  /** Of a Job: no pod of the index is wanted any more. Absent: every one is. */
  readonly isDone?: (index: number) => boolean;
}

export interface NamespaceState {
  readonly name: string;
  /** It was deleted, and nothing can be created in it any more. */
  readonly terminating?: true;
  readonly labels: Labels;
  readonly annotations: Labels;
}

/**
 * What is known of a workload.
 *
 * | unknown        | it may be there: its group is served, and not in a version that is read                     |
 * | never admitted | nobody has applied it on this host, where all that is there was; its pods may be there alone |
 * | undefined      | it is not there                                                                             |
 */
export type WorkloadAnswer = WorkloadState | "unknown" | "never admitted" | undefined;

/** Something changed of a Pod, a Namespace or a workload; `key`: namespace/name, of a Namespace its name. Only enqueues. */
export type ObjectHandler = (kind: string, key: string) => void;

/**
 * The world outside Berth's records: what the API server holds in a cluster, what was admitted on the embedded
 * stack. `undefined` means that no such object exists now. Throws BerthError NOT_READY or
 * STORE_UNAVAILABLE when it cannot know: absence is never guessed.
 */
export interface ClusterState {
  pod(namespace: string, name: string): Promise<PodState | undefined>;
  workload(ref: WorkloadRef): Promise<WorkloadAnswer>;
  namespace(name: string): Promise<NamespaceState | undefined>;
  /** Known never to run its pods again: deleted with its grace over, out-of-service, or fenced by an operator. */
  fenced(node: string): Promise<boolean>;
  /**
   * The pod that was admitted with the token and has not started: what is held for it says its token alone, until
   * somebody meets it. May cost a list of the namespace's pods. Absent: whoever holds something for a pod knows its name.
   */
  readonly admittedWith?: ((namespace: string, token: string) => Promise<PodState | undefined>) | undefined;
  /** Whether a pod of that name was there and was deleted; absent: nobody knows without asking. */
  readonly podIsGone?: ((namespace: string, name: string) => boolean) | undefined;
  /** What is known of nodes now, which only proposes; absent or undefined: nothing. */
  readonly nodes?: (() => Iterable<NodeFacts> | undefined) | undefined;
  /**
   * Calls the handler after every change of what is said here of pods, namespaces and workloads, from here on; gives what takes it
   * away again. Whether a node is fenced is to be asked. Absent: nobody hears of changes.
   */
  readonly onChange?: ((handler: ObjectHandler) => () => void) | undefined;
}

/** A namespace that the inventory does not know yet has the one label that every namespace has. */
export async function namespaceOf(
  inventory: Pick<ClusterState, "namespace">,
  name: string,
): Promise<NamespaceState> {
  return (await inventory.namespace(name)) ?? bareNamespace(name);
}

export function bareNamespace(name: string): NamespaceState {
  return { name, labels: { "kubernetes.io/metadata.name": name }, annotations: {} };
}
