// SPDX-License-Identifier: Apache-2.0
import type { PodFacts, WorkloadFacts } from "../../allocator/inventory.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";

/** A pod as far as its claim is concerned. */
export interface PodSeen extends PodFacts {
  /** Pending, Running, Succeeded, Failed. */
  readonly phase: string;
  /** It has a deletionTimestamp: its containers are being stopped. */
  readonly deleting: boolean;
  /** Host network, mirror pod or exempt namespace: none of Berth's business. */
  readonly exempt: boolean;
}

/** A workload, and what `allocator/template.ts` reads of it: everything else of the object is left out. */
export interface WorkloadSeen {
  readonly facts: WorkloadFacts;
  readonly object: KubeObject;
}

export interface NodeSeen {
  readonly name: string;
  readonly uid: string;
  /** By the out-of-service taint, or by an operator's word (the annotation FENCED). */
  readonly fenced: boolean;
}
