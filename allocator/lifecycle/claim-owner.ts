// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../base/errors.ts";
import { ASSIGNED_CLAIM, readRequest, withDefaults } from "../manifest/annotations.ts";
import { requestsAddress } from "../model/address-request.ts";
import type { Claim, Identity } from "../model/claim.ts";
import { workloadOf } from "../model/claim-workload.ts";
import type { ClusterState, NamespaceState, PodState, WorkloadState } from "../model/cluster-state.ts";

/**
 * What the workload, which exists, wants of the identity.
 *
 * | an ordinal that it runs, an index that is not done, an entry of its list | needed  |
 * | an ordinal beyond its replicas                                           | scaled  |
 * | an entry that its list has lost, an index that is done                   | deleted |
 *
 * One of another UID under the same name has inherited what it wants, for its pods will find it by its name; what it
 * does not want was the other one's, which is deleted.
 */
export function neededBy(
  workload: WorkloadState,
  { ordinal, slot, uid = "" }: Pick<Identity, "ordinal" | "slot" | "uid">,
): "needed" | "scaled" | "deleted" {
  const { start, replicas, slots, isDone } = workload;
  if (slot !== undefined) return slots !== undefined && slot >= slots ? "deleted" : "needed";
  if (ordinal === undefined || isDone?.(ordinal) === true) return "deleted";
  if (ordinal >= start && ordinal < start + replicas) return "needed";
  const isSuccessor = uid !== "" && workload.uid !== "" && uid !== workload.uid;
  return isSuccessor || workload.kind === "Job" ? "deleted" : "scaled";
}

/** Whether the claim is of a place that a workload wants which is known to exist: it stays that workload's. */
export async function isWanted(claim: Claim, inventory: Pick<ClusterState, "workload">): Promise<boolean> {
  const ref = workloadOf(claim);
  const workload = ref && (await inventory.workload(ref));
  if (workload === undefined || workload === "unknown") return false;
  return neededBy(workload, claim.identity) === "needed";
}

/**
 * Whether the next pod of the claim's name will do without it: the one that is there was given none, and the template
 * does not ask any more. A template alone says nothing of pods that somebody else makes ask.
 */
export function isDeclined(
  claim: Claim,
  pod: PodState,
  { annotations, hostNetwork }: WorkloadState,
  namespace: NamespaceState | undefined,
): boolean {
  if (claim.identity.ordinal === undefined) return false;
  if (pod.ended || pod.uid === claim.binding?.podUID || pod.annotations[ASSIGNED_CLAIM] !== undefined)
    return false;
  if (hostNetwork) return true;
  const request = readRequest(namespace === undefined ? annotations : withDefaults(annotations, namespace));
  return !isRefusal(request) && !requestsAddress(request);
}
