// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import { isCooldownOver, isLeftBy } from "../lifecycle/acquire.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { claimConflict } from "../lifecycle/claim-conflicts.ts";
import { constraintsWithClaim, withClaimByHand, withClaimSpec } from "../lifecycle/existing-claim.ts";
import { isUpToDate } from "../lifecycle/reserve.ts";
import { claimKey, isReserved } from "../model/claim.ts";
import { isBackedByClaim, isHeldBy, type Reservation } from "../model/reservation.ts";
import { isAsPlanned, planAddresses } from "../planning/address-plan.ts";
import type { Plan } from "../planning/plan.ts";
import type { Stored } from "../store/store.ts";

/**
 * What `reserve` would come to, by the view alone, for whoever asks again and again: `satisfied`, the claim has all that it
 * should have; a refusal, an address that is needed is seen in other hands; `unknown`, only the store can tell.
 */
export function predictFromCache(
  context: Pick<Context, "view" | "clock">,
  resolved: AllocationRequest,
): Prediction {
  const { view } = context;
  const known = view.claim(claimKey(resolved.key));
  const claim = known?.record;
  const said = withClaimSpec(resolved, claim);
  if (claim?.releasing === true || claim?.deleting === true) return { kind: "unknown" };
  const barred = claimConflict(claim, said.identity);
  if (barred !== undefined) return barred;
  const allocation = withClaimByHand(view, said, claim);
  if (isRefusal(allocation)) return allocation;
  const plan = planAddresses(view, constraintsWithClaim(allocation, claim));
  if (isRefusal(plan)) return plan;
  const refusal = takenAlready(context, allocation, plan);
  if (refusal !== undefined) return refusal;
  return known !== undefined && hasAll(context, allocation, known, plan)
    ? { kind: "satisfied", claim: known }
    : { kind: "unknown" };
}

/** By the view: the claim has all that is asked for, so that a review takes nothing. */
export function isSatisfied({ view }: Pick<Context, "view">, resolved: AllocationRequest): boolean {
  const claim = view.claim(claimKey(resolved.key))?.record;
  if (claim === undefined || !isReserved(claim)) return false;
  const allocation = withClaimByHand(view, withClaimSpec(resolved, claim), claim);
  if (isRefusal(allocation)) return false;
  const plan = planAddresses(view, constraintsWithClaim(allocation, claim));
  return !isRefusal(plan) && isAsPlanned(plan, claim.addresses);
}

type Prediction =
  | { readonly kind: "satisfied"; readonly claim: Stored<"claim"> }
  | { readonly kind: "unknown" }
  | Refusal;

function takenAlready(
  context: Pick<Context, "view" | "clock">,
  allocation: AllocationRequest,
  plan: Plan,
): Refusal | undefined {
  const key = claimKey(allocation.key);
  for (const familyPlan of plan.familyPlans) {
    if (!familyPlan.exact) continue;
    for (const { address } of familyPlan.candidates) {
      const found = context.view.reservation(address);
      if (found === undefined || claimKey(found.record.claim) === key || isCooldownOver(context, found))
        continue;
      if (mayTakeOver(context, allocation, found.record)) continue;
      return familyPlan.exhausted();
    }
  }
  return undefined;
}

/** It was left by the claim that this one takes over from. */
function mayTakeOver(
  { view }: Pick<Context, "view">,
  { key, constraints }: AllocationRequest,
  found: Reservation,
): boolean {
  return (
    isLeftBy(constraints.takesOver, found, key) &&
    !isBackedByClaim(view.claim(claimKey(found.claim))?.record, found)
  );
}

function hasAll(
  { view }: Pick<Context, "view">,
  allocation: AllocationRequest,
  { record: claim }: Stored<"claim">,
  plan: Plan,
): boolean {
  if (!isReserved(claim) || !isAsPlanned(plan, claim.addresses)) return false;
  const holds = claim.addresses.every((address) => {
    const reservation = view.reservation(address)?.record;
    return reservation !== undefined && isHeldBy(reservation, claim.nonce);
  });
  return holds && isUpToDate(claim, allocation);
}
