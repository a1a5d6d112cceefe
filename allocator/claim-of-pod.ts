// SPDX-License-Identifier: Apache-2.0
import { type Claim, claimKey } from "./claim.ts";
import { ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "./dialects.ts";
import type { Labels } from "./ports.ts";

/** A claim that may be the pod's, and what the pod says to prove it. */
export interface ClaimLead {
  /** namespace/name */
  readonly key: string;
  /** As in the pod's annotation; empty: found by the pod's name. */
  readonly token: string;
}

/** Where to look for the pod's claim, in this order: the one it has a token of, then the one that is called like it. */
export function leadsOf(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  annotations: Labels,
): readonly ClaimLead[] {
  const named = annotations[ASSIGNED_CLAIM];
  const token = annotations[ASSIGNED_TOKEN] ?? "";
  const own = { key: claimKey({ namespace, name }), token: "" };
  return named === undefined || token === ""
    ? [own]
    : [{ key: claimKey({ namespace, name: named }), token }, own];
}

/**
 * Whether the claim under the lead's key is the pod's: by its token, or, for a pod that has none, by its name alone:
 * then it is no slot of a set, and promised to nobody in particular.
 */
export function isLedTo({ token }: ClaimLead, { identity, binding }: Claim): boolean {
  const lent = binding?.token ?? "";
  return token === "" ? identity.slot === undefined && lent === "" : lent === token;
}
