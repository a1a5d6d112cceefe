// SPDX-License-Identifier: Apache-2.0
// Pods that no webhook reviewed (`failurePolicy: Ignore`): what their namespace asks for, and what is kept for their name, was not written into them.

import { type Refusal, refuse } from "../../../../allocator/base/errors.ts";
import { MIRROR_POD_ANNOTATION } from "../../../../allocator/demand/pod-allocation.ts";
import { matchesRef, speaksForName } from "../../../../allocator/manifest/pod-claim.ts";
import { type Claim, claimKey } from "../../../../allocator/model/claim.ts";
import { workloadOf } from "../../../../allocator/model/claim-workload.ts";
import { describeIdentity } from "../../../../allocator/model/identity.ts";
import { serves } from "../claim-result.ts";
import type { AttachRequest } from "../claim-source.ts";
import { type NodePod, podKey } from "./node-cache.ts";

/**
 * Whether the claim of the pod's name keeps the pod from any other address, though it asks for nothing and was given none.
 *
 * | the claim                                                  |                                    |
 * |------------------------------------------------------------|------------------------------------|
 * | is a slot, a Job's or a machine's, or a pod's with a token | no: it is found by no name         |
 * | is given back, or another pod's                            | no                                 |
 * | is not for this interface                                  | no                                 |
 * | speaks for its name                                        | yes: the binder gives it to the pod |
 * | is of an ordinal that its workload wants                   | yes: its namespace may ask for it  |
 * | is retained for an ordinal that nobody wants               | no                                 |
 */
export function isKeptFor(request: AttachRequest, claim: Claim): boolean {
  const { pod } = request;
  const holder = claim.binding?.podName ?? "";
  if (!matchesRef({ key: podKey(pod), token: "" }, claim) || claim.releasing === true) return false;
  if ((holder !== "" && holder !== pod.name) || !serves(claim, request, undefined)) return false;
  return speaksForName(claim) || (workloadOf(claim) !== undefined && claim.retained === undefined);
}

/** A pod that is up keeps the address that it has, as at the binder; a static one is nobody's whom a review could have reached. */
export function isPastReview(pod: NodePod | undefined): boolean {
  return pod?.up === true || pod?.annotations[MIRROR_POD_ANNOTATION] !== undefined;
}

/** The pod is not bound to the claim yet, or will not be. */
export function notReviewed({ pod }: AttachRequest, claim: Claim): Refusal {
  const key = claimKey(claim);
  const whose = `claim ${key} is kept for ${describeIdentity(claim.identity)}`;
  const wayOut = speaksForName(claim)
    ? "it is bound to the pod once a Berth webhook runs; try again"
    : "delete the pod once a Berth webhook runs, so that it is created again with the claim's address";
  const words = `${whose}, and pod ${podKey(pod)} was created without a review by Berth: ${wayOut}`;
  return refuse("CLAIM_BUSY", words, { claim: key, pod: pod.name });
}
