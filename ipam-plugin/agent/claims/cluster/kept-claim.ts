// SPDX-License-Identifier: Apache-2.0
// Pods that no webhook reviewed (`failurePolicy: Ignore`): what is kept for their name was not written into them.

import { type Refusal, refuse } from "../../../../allocator/base/errors.ts";
import { MIRROR_POD_ANNOTATION } from "../../../../allocator/demand/pod-allocation.ts";
import { matchesRef, speaksForName } from "../../../../allocator/manifest/pod-claim.ts";
import { type Claim, claimKey } from "../../../../allocator/model/claim.ts";
import { describeIdentity } from "../../../../allocator/model/identity.ts";
import { serves } from "../claim-result.ts";
import type { AttachRequest } from "../claim-source.ts";
import { type NodePod, podKey } from "./node-cache.ts";

/**
 * Whether the claim of the pod's name keeps the pod from any other address, though it asks for nothing and was given none. What counts is
 * what the binder goes by, so that no pod waits for a claim that it will not be given.
 *
 * | the claim                                                  |                                    |
 * |------------------------------------------------------------|------------------------------------|
 * | is a slot, a Job's or a machine's, or a pod's with a token | no: it is found by no name         |
 * | is given back, or another pod's                            | no                                 |
 * | is not for this interface                                  | no                                 |
 * | speaks for its name                                        | yes: the binder gives it to the pod |
 * | is of an ordinal                                           | no: its template may have stopped asking, or its pods need no review |
 */
export function isKeptFor(request: AttachRequest, claim: Claim): boolean {
  const { pod } = request;
  const holder = claim.binding?.podName ?? "";
  if (!matchesRef({ key: podKey(pod), token: "" }, claim) || claim.releasing === true) return false;
  if ((holder !== "" && holder !== pod.name) || !serves(claim, request, undefined)) return false;
  return speaksForName(claim);
}

/** A pod that is up keeps the address that it has, as at the binder; a static one is nobody's whom a review could have reached. */
export function isPastReview(pod: NodePod | undefined): boolean {
  return pod?.up === true || pod?.annotations[MIRROR_POD_ANNOTATION] !== undefined;
}

/** The pod is not bound to the claim yet, and never will be on a node that the claim's pool is not for: nodes' labels are not known here. */
export function notReviewed({ pod }: AttachRequest, claim: Claim): Refusal {
  const key = claimKey(claim);
  const whose = `claim ${key} is kept for ${describeIdentity(claim.identity)}`;
  const wayOut =
    "it is bound to the pod once a Berth webhook runs, if the pod's node is one of its pool's; else delete the pod, so that it is created again; try again";
  const words = `${whose}, and pod ${podKey(pod)} was created without a review by Berth: ${wayOut}`;
  return refuse("CLAIM_BUSY", words, { claim: key, pod: pod.name });
}
