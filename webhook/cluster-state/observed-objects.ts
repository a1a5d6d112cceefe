// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { NetworkAttachment } from "../../allocator/manifest/network-attachments.ts";
import type { PodState, WorkloadState } from "../../allocator/model/cluster-state.ts";

/** A pod as far as its claim is concerned. */
export interface ObservedPod extends PodState {
  /** A sandbox of it has been up, with an address from somewhere. */
  readonly up: boolean;
  /** What its status says that it has, with commas between; absent: nothing, or they are its host's. */
  readonly addresses?: string;
  readonly deleting: boolean;
  /** Host network, mirror pod or exempt namespace: none of Berth's business. */
  readonly exempt: boolean;
  /** How many networks its annotations name beside the cluster's; absent: none. */
  readonly networks?: number;
  /** These, as long as it is on a node and has no address. */
  readonly attachments?: readonly NetworkAttachment[];
}

/** A workload, and what `allocator/demand/workload-allocation.ts` reads of it: everything else of the object is left out. */
export interface ObservedWorkload {
  readonly facts: WorkloadState;
  readonly object: KubeObject;
}

export interface ObservedNode {
  readonly name: string;
  readonly uid: string;
  /** By the out-of-service taint, or by an operator's word (the annotation FENCED). */
  readonly fenced: boolean;
  readonly labels: Labels;
  /** What its spec says of its pods' CIDRs, with commas between; absent: nothing. */
  readonly podCIDRs?: string;
  /** What Cilium's annotations say in its place; absent: nothing, or its spec says it. */
  readonly annotatedCIDRs?: string;
  /** InternalIP and ExternalIP of its status, with commas between; absent: it says none. */
  readonly addresses?: string;
}
