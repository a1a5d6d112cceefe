// SPDX-License-Identifier: Apache-2.0
import type { Labels } from "./ports.ts";

/** A pod as far as addresses are concerned. */
export interface PodFacts {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Empty until it is scheduled. */
  readonly node: string;
  readonly labels: Labels;
  readonly annotations: Labels;
}

/** A workload whose pods have identities: a StatefulSet, or a Deployment with a set of addresses. */
export interface WorkloadFacts {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly replicas: number;
  /** `spec.ordinals.start` of a StatefulSet; 0 elsewhere. */
  readonly start: number;
  /** Entries of the list of addresses that its pods share; absent when the list cannot be read. */
  readonly slots?: number;
}

export interface NamespaceFacts {
  readonly name: string;
  readonly labels: Labels;
  readonly annotations: Labels;
}

/**
 * The world outside Berth's records: what the API server holds in a cluster, what was admitted on the embedded
 * stack. `undefined` means that the authority has no such object now. Throws BerthError NOT_READY or
 * STORE_UNAVAILABLE when it cannot know: absence is never guessed.
 */
export interface Inventory {
  pod(namespace: string, name: string): Promise<PodFacts | undefined>;
  /** `unknown`: never heard of, as on the embedded stack a workload that nobody applied; that is no proof of absence. */
  workload(kind: string, namespace: string, name: string): Promise<WorkloadFacts | "unknown" | undefined>;
  namespace(name: string): Promise<NamespaceFacts | undefined>;
  /** Known never to run its pods again: deleted with its grace over, out-of-service, or fenced by an operator. */
  fenced(node: string): Promise<boolean>;
}
