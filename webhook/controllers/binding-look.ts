// SPDX-License-Identifier: Apache-2.0
import { type Bindee, type BindFacts, planBind } from "../../allocator/bind.ts";
import type { Claim } from "../../allocator/claim.ts";
import { type ClaimLead, isLedTo, leadsOf } from "../../allocator/claim-of-pod.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../../allocator/dialects.ts";
import { isRefusal, type Refusal, refuse } from "../../allocator/errors.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { View } from "../../allocator/view.ts";
import type { PodSeen } from "../cluster/watches.ts";
import { hasEnded } from "./binding-facts.ts";

/** What there is to do for a pod, so far as is known. */
export type Look =
  /** Bound already, or none of the binder's business. */
  | { readonly kind: "settled" }
  /** Until one of these claims changes, or what they are lent to. */
  | { readonly kind: "waits"; readonly claims: readonly string[]; readonly refusal: Refusal }
  /** Its promise holds for a while yet, and it may be scheduled meanwhile. */
  | { readonly kind: "early"; readonly claim: Stored<"claim">; readonly afterMs: number }
  | { readonly kind: "due"; readonly claim: Stored<"claim">; readonly bindee: Bindee };

/** What decides: the records, what may be true of a claim's binding, and the time. */
export interface Sight {
  readonly view: Pick<View, "claim">;
  readonly hints: (claim: Claim, bindee: Bindee) => Promise<BindFacts>;
  readonly now: number;
}

/** So long before a pod that is not scheduled meets its promise: most are scheduled by then, which saves a write. */
export const MEET_AFTER_MS = 10_000;

const SETTLED: Look = { kind: "settled" };

/** Looks at a pod without asking the API server. */
export async function lookAt(pod: PodSeen, sight: Sight): Promise<Look> {
  if (pod.exempt || pod.deleting || hasEnded(pod)) return SETTLED;
  const leads = leadsOf(pod, pod.annotations);
  const lead = leads.find((each) => leadsSomewhere(each, sight.view));
  const claim = lead && sight.view.claim(lead.key);
  if (claim === undefined) return withoutClaim(pod, leads);
  if (pod.node === "" && lead?.token === "") return SETTLED; // its name keeps the claim for it
  const bindee = bindeeOf(pod, lead?.token ?? "");
  const plan = planBind(claim.record, bindee, await sight.hints(claim.record, bindee), sight.now);
  if (isRefusal(plan)) return { kind: "waits", claims: [claim.key], refusal: plan };
  if (plan.kind === "bound") return SETTLED;
  const afterMs = pod.node === "" ? untilMeeting(claim.record, sight.now) : 0;
  return afterMs > 0 ? { kind: "early", claim, afterMs } : { kind: "due", claim, bindee };
}

function leadsSomewhere(lead: ClaimLead, view: Sight["view"]): boolean {
  const claim = view.claim(lead.key);
  return claim !== undefined && isLedTo(lead, claim.record);
}

/** A pod that passed the webhook was given a claim; it may not have come by yet, or be somebody else's by now. */
function withoutClaim(pod: PodSeen, leads: readonly ClaimLead[]): Look {
  const named = pod.annotations[ASSIGNED_CLAIM];
  if (named === undefined) return SETTLED;
  const claim = `${pod.namespace}/${named}`;
  const refusal = refuse(
    "CLAIM_MISSING",
    `claim ${claim}, with which pod ${pod.name} was admitted, is gone or kept for another pod by now; delete the pod and create it again`,
    { claim, pod: pod.name },
  );
  return { kind: "waits", claims: [...new Set([claim, ...leads.map(({ key }) => key)])], refusal };
}

function bindeeOf({ name, uid, node, annotations }: PodSeen, token: string): Bindee {
  const assigned = annotations[ASSIGNED_ADDRESSES]?.split(",");
  return { name, uid, node, token, ...(assigned === undefined ? {} : { assigned }) };
}

/** Clocks of two hosts differ: a promise of tomorrow waits no longer than one of now. */
function untilMeeting({ binding }: Claim, now: number): number {
  return Math.min(MEET_AFTER_MS, MEET_AFTER_MS - (now - (binding?.since ?? 0)));
}
