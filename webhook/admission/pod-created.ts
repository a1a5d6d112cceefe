// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { admissionAnswerOf } from "../../allocator/demand/admitted-pod.ts";
import { isSame } from "../../allocator/lifecycle/bind.ts";
import { ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { claimKey, isReserved } from "../../allocator/model/claim.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";

/**
 * Makes sure that the claim of a pod which was just kept is still there. Between its two reviews the pod existed for
 * nobody, and the claim of its predecessor may have been let go, or changed for another pod of the name. The pod is kept first and its claim written after;
 * a garbage collector reads the claim, then the pods, then compares and sets: one of the two notices the other.
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
  const change = { kind: "claim", key, doing: "its pod was admitted" } as const;
  return await retryOnConflict(store, change, async (seen) => {
    if (seen === undefined || !isReserved(seen.record)) return released(key);
    const told = admissionAnswerOf(annotations)?.addresses ?? [];
    if (!isSame(told, seen.record.addresses)) return movedOn(key, seen.record.addresses, told);
    const next = { ...seen.record, admittedAt: clock.now() };
    const { kind } = await store.replace("claim", seen, next);
    return kind === "replaced" ? undefined : kind;
  });
}

/** It asks for nothing itself, and what its claim has was changed by another pod of the name. */
function movedOn(key: string, has: readonly string[], told: readonly string[]): Refusal {
  const words = `claim ${key} holds ${has.join(", ")} now, and this pod was given ${told.join(", ")} while another one of its name was on its way; create it again`;
  return refuse("CLAIM_CHANGED", words, { claim: key, address: told.join(",") });
}

function released(key: string): Refusal {
  const words = `claim ${key} was let go with the pod that had it, while this one was on its way; create the pod again`;
  return refuse("CLAIM_RELEASING", words, { claim: key });
}
