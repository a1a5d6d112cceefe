// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../base/errors.ts";
import { ASSIGNED_CLAIM, readRequest } from "../manifest/annotations.ts";
import { doesWithout, matchesRef, type OwnReader } from "../manifest/pod-claim.ts";
import { requestsNothing } from "../model/address-request.ts";
import { type Claim, claimKey, hadPod, type Identity } from "../model/claim.ts";
import { workloadOf } from "../model/claim-workload.ts";
import type {
  ClusterState,
  NamespaceState,
  PodState,
  WorkloadRef,
  WorkloadState,
} from "../model/cluster-state.ts";
import { isSameUid } from "../model/identity.ts";
import { isInOrdinals } from "../model/ordinals.ts";
import { isSameGroup } from "../model/workload-kinds.ts";

/**
 * What the workload, which exists, wants of the identity. What OpenKruise's StatefulSet leaves out counts as wanted: that keeps a claim for
 * longer than it need be, and releases none under a pod that comes back.
 *
 * | an ordinal that it runs, an index that is not done, an entry of its list | needed  |
 * | an ordinal beyond its replicas                                           | scaled  |
 * | an entry that its list has lost, an index that is done                   | deleted |
 * | an entry of a list whose pods are on the host's network by now           | deleted |
 *
 * One of another UID under the same name has inherited what it wants, for its pods will find it by its name; what it
 * does not want was the other one's, which is deleted.
 */
export function neededBy(
  workload: WorkloadState,
  { ordinal, slot, uid = "" }: Pick<Identity, "ordinal" | "slot" | "uid">,
): "needed" | "scaled" | "deleted" {
  const { slots, isDone } = workload;
  // its next pods have the host's addresses
  if (slot !== undefined && workload.hostNetwork) return "deleted";
  if (slot !== undefined) return slots !== undefined && slot >= slots ? "deleted" : "needed";
  if (ordinal === undefined || isDone?.(ordinal) === true) return "deleted";
  if (isInOrdinals(workload, ordinal)) return "needed";
  // how far its ordinals go is not known: none is given up by that
  if (workload.isCutOff === true && ordinal >= workload.start) return "needed";
  const isSuccessor = uid !== "" && workload.uid !== "" && uid !== workload.uid;
  return isSuccessor || workload.kind === "Job" ? "deleted" : "scaled";
}

/**
 * Whether the claim stays with the place of a workload that it is of, whoever's pod comes with its name.
 *
 * | the workload            | a pod of another workload | a pod by itself                       |
 * |-------------------------|---------------------------|---------------------------------------|
 * | wants the place         | stays                     | stays                                 |
 * | is there, scaled down   | passes                    | stays, if `whenScaled` is to retain  |
 * | is gone                 | passes                    | stays, if `whenDeleted` is to retain |
 * | is not known            | passes                    | stays, if a pod has used the claim    |
 *
 * Where it is not known, and the pod's owner has the name and another UID, that may be its successor, or one that is gone: what a pod has
 * used stays if it is to be retained.
 *
 * A workload that has come under the name inherits. A pod by itself leaves nothing behind: what it took over would be given
 * back with it, although its retention has not let go (invariant 5). So does one whose owner had this name and is gone, as
 * a pod that was restored with its owner references.
 */
export async function isKeptForOwner(
  claim: Claim,
  requester: Identity,
  inventory: Pick<ClusterState, "workload">,
): Promise<boolean> {
  const ref = workloadOf(claim);
  if (ref === undefined) return false;
  const workload = await inventory.workload(ref);
  const isPodAlone = requester.kind === "Pod" || isOf(ref, requester);
  const { whenScaled, whenDeleted } = claim.retention;
  if (typeof workload === "string") {
    const isToRetain = requester.kind === "Pod" || [whenScaled, whenDeleted].includes("Retain");
    return isPodAlone && isToRetain && hadPodOrIsRetained(claim);
  }
  if (workload !== undefined && isOf(ref, requester) && isSameUid(workload.uid, requester.uid)) return false;
  const state = workload === undefined ? "deleted" : neededBy(workload, claim.identity);
  if (state === "needed") return true;
  return isPodAlone && (state === "scaled" ? whenScaled : whenDeleted) === "Retain";
}

function isOf({ apiVersion, kind, name }: WorkloadRef, requester: Identity): boolean {
  return kind === requester.kind && name === requester.name && isSameGroup(apiVersion, requester.apiVersion);
}

/** It is not one that waits for its first pod: an ordinal that never had a pod may be retained, when its workload was scaled down. */
export function hadPodOrIsRetained(claim: Claim): boolean {
  return hadPod(claim) || claim.retained !== undefined;
}

/**
 * Whether the pod, which is not bound to the claim, is to be: it is found by its name, and was given the claim at its admission or asks for an
 * address itself. One that no review saw says so by its annotations alone, and may wait for a node for as long as it likes.
 */
export function isWaitingFor(pod: PodState, claim: Claim, own: OwnReader): boolean {
  const { namespace, name, annotations, ended, onHostNetwork } = pod;
  if (ended || onHostNetwork === true) return false;
  const given = annotations[ASSIGNED_CLAIM] ?? claim.name;
  const byName = { key: claimKey({ namespace, name }), token: "" };
  if (given !== claim.name || byName.key !== claimKey(claim) || !matchesRef(byName, claim)) return false;
  // as for one that is up: what else it would take at its start, it was not promised
  return !doesWithout(annotations, claim, true, own);
}

/** What the pods of a workload ask for. */
interface TemplateOf {
  readonly workload: WorkloadState;
  readonly namespace: NamespaceState;
  readonly own: OwnReader;
}

/**
 * Whether the next pod of the claim's name will do without it: the one that is there was given none and does not ask itself, and the
 * template does not ask any more, or asks another system. A template alone says nothing of pods that somebody else makes ask.
 */
export function isDeclined(claim: Claim, pod: PodState, { workload, namespace, own }: TemplateOf): boolean {
  if (claim.identity.ordinal === undefined) return false;
  if (pod.ended || pod.uid === claim.binding?.podUID || pod.annotations[ASSIGNED_CLAIM] !== undefined)
    return false;
  if (isWaitingFor(pod, claim, own)) return false;
  if (workload.hostNetwork) return true;
  const asked = own(workload.annotations, namespace);
  const request = readRequest(asked.annotations, asked.namespace);
  return requestsNothing(request);
}

/** The same of an entry of a list that any pod of the workload may have: what the template asks another system for counts for none. */
export function isEntryDeclined(
  { identity: { slot } }: Claim,
  { workload, namespace, own }: TemplateOf,
): boolean {
  if (slot === undefined) return false;
  const asked = own(workload.annotations, namespace);
  if (isDeepStrictEqual(asked.annotations, workload.annotations)) return false; // `neededBy` has counted them
  return slot >= entriesIn(asked);
}

/** Counted once for all entries of a list: what was asked -> how many. */
const counted = new WeakMap<ReturnType<OwnReader>, number>();

/** Infinite where it cannot be read: none is given up by that. */
function entriesIn(asked: ReturnType<OwnReader>): number {
  const known = counted.get(asked);
  if (known !== undefined) return known;
  const request = readRequest(asked.annotations, asked.namespace);
  const entries = isRefusal(request) ? Number.POSITIVE_INFINITY : (request.entries?.length ?? 0);
  counted.set(asked, entries);
  return entries;
}
