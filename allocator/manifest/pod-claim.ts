// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../base/ports.ts";
import { requestsNothing } from "../model/address-request.ts";
import { type Claim, claimKey, hadPod } from "../model/claim.ts";
import { workloadOf } from "../model/claim-workload.ts";
import { bareNamespace, type NamespaceState } from "../model/cluster-state.ts";
import { isFoundByName } from "../model/identity.ts";
import { ASSIGNED_CLAIM, ASSIGNED_TOKEN, readRequest } from "./annotations.ts";

/** A claim that may be the pod's, and what the pod says to prove it. */
export interface ClaimRef {
  /** namespace/name */
  readonly key: string;
  /** As in the pod's annotation; empty: found by the pod's name. */
  readonly token: string;
}

/**
 * What of a pod's or template's annotations, and of its namespace's, is for Berth: a request in other systems' words may be theirs. That
 * depends on the pools, which are not known here.
 */
export type OwnReader = (
  annotations: Labels,
  namespace: NamespaceState,
) => { readonly annotations: Labels; readonly namespace: NamespaceState };

/** Where to look for the pod's claim, in this order: the one it has a token of, then the one that is called like it. */
export function claimRefsFor(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  annotations: Labels,
): readonly ClaimRef[] {
  const named = annotations[ASSIGNED_CLAIM];
  const token = annotations[ASSIGNED_TOKEN] ?? "";
  const own = { key: claimKey({ namespace, name }), token: "" };
  return named === undefined || token === ""
    ? [own]
    : [{ key: claimKey({ namespace, name: named }), token }, own];
}

/**
 * Whether the claim under the lead's key is the pod's: by its token, or, for a pod that has none, by its name alone:
 * then it is no slot of a set, no Job's and no machine's, and held for nobody in particular.
 */
export function matchesRef({ token }: ClaimRef, { identity, binding }: Claim): boolean {
  const bound = binding?.token ?? "";
  return token === "" ? isFoundByName(identity) && bound === "" : bound === token;
}

/**
 * Whether the claim is nobody's by now that a pod, which is in the store, has a token of: its hold ended before the pod was kept, and
 * the process that was to hold it again has ended. Binding it decides whose it is; that it has the pod's addresses is asked there.
 */
export function isLeftTo({ key, token }: ClaimRef, annotations: Labels, claim: Claim): boolean {
  const isAssigned = token !== "" && annotations[ASSIGNED_TOKEN] === token && claimKey(claim) === key;
  return isAssigned && claim.binding === undefined && claim.releasing !== true;
}

/**
 * Whether a pod that was given none and asks for none does without the claim of its name. It does, unless the claim speaks for every pod
 * of the name. A pod that is up keeps the address that it has as long as it lives, and must not find a claim when its next
 * sandbox starts. What it asks of another system is no request for it.
 */
export function doesWithout(annotations: Labels, claim: Claim, isUp: boolean, own: OwnReader): boolean {
  if (annotations[ASSIGNED_CLAIM] !== undefined) return false;
  if (!isUp && speaksForName(claim)) return false;
  const asked = readRequest(own(annotations, bareNamespace(claim.namespace)).annotations);
  return requestsNothing(asked);
}

/**
 * Whether it is for a pod that asks for nothing, if that is called like it: somebody made it by hand, or a pod by itself had it before.
 * One that only a review has made says nothing of such a pod: it may be forged, or of a create that was refused. Nor does an
 * ordinal whose template has stopped asking: it goes back.
 */
export function speaksForName(claim: Claim): boolean {
  return claim.handMade === true || (workloadOf(claim) === undefined && hadPod(claim));
}
