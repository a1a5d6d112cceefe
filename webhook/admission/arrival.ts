// SPDX-License-Identifier: Apache-2.0
import { claimKey, isReserved } from "../../allocator/claim.ts";
import { type Context, MAX_ROUNDS } from "../../allocator/context.ts";
import { ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../allocator/dialects.ts";
import { BerthError, type Refusal, refuse } from "../../allocator/errors.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";

/**
 * Makes sure that the claim of a pod which was just kept is still there. Between its two reviews the pod existed for
 * nobody, and the claim of its predecessor may have been let go. The pod is kept first and its claim written after;
 * a reaper reads the claim, then the pods, then compares and sets: one of the two notices the other.
 * Throws REVISION_CONFLICT when the claim keeps changing.
 */
export async function confirmClaim(
  { store, clock }: Pick<Context, "store" | "clock">,
  { metadata }: KubeObject,
): Promise<Refusal | undefined> {
  const { namespace, name, annotations } = metadata;
  // Whoever has a token met the claim by it.
  if (annotations[ASSIGNED_CLAIM] !== name || annotations[ASSIGNED_TOKEN] !== undefined) return undefined;
  const key = claimKey({ namespace, name });
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const seen = await store.get("claim", key);
    if (seen === undefined || !isReserved(seen.record)) return released(key);
    const next = { ...seen.record, admittedAt: clock.now() };
    if ((await store.replace("claim", seen, next)).kind === "replaced") return undefined;
  }
  throw new BerthError("REVISION_CONFLICT", `claim ${key} kept changing while its pod was admitted`, {
    details: { claim: key },
  });
}

function released(key: string): Refusal {
  const words = `claim ${key} was let go with the pod that had it, while this one was on its way; create the pod again`;
  return refuse("CLAIM_RELEASING", words, { claim: key });
}
