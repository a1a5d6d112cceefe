// SPDX-License-Identifier: Apache-2.0
// What a review may do for a pod whose claim is there already: nothing of the claim changes (ADR 0007).

import type { Context } from "../cache/context.ts";
import { compareAddresses } from "../ip/address.ts";
import { formatAddresses, formatHolding } from "../model/interfaces.ts";
import { placesIn } from "../planning/interface-plan.ts";
import type { Plan } from "../planning/plan.ts";
import type { Stored } from "../store/store.ts";
import { acquireAll, afterLoss, holdCandidate, lossOf, rollback } from "./acquire.ts";
import type { AllocationRequest, Attempt, Reserved } from "./allocation-request.ts";
import { HOLD_TIMEOUT_MS } from "./hold.ts";

/** The answer for a claim that has all that is asked for. */
export function heldAddresses(claim: Stored<"claim">): Reserved {
  const { addresses } = claim.record;
  const assigned = formatHolding(claim.record);
  return { kind: "reserved", claim, addresses, assigned, besideClaim: [], waits: false, made: false };
}

/**
 * Takes for the pod what it would have, beside what the claim has: the claim lists it once the pod is seen in the store,
 * and if none comes it is given back as any reservation that no claim relies on.
 */
export async function reserveBeside(
  context: Context,
  allocation: AllocationRequest,
  known: Stored<"claim">,
  plan: Plan,
): Promise<Attempt> {
  const { nonce } = known.record;
  const took = await acquireAll(
    { context, claim: allocation.key, nonce, take: holdCandidate },
    plan.familyPlans,
  );
  if (!Array.isArray(took)) return took;
  const loss = await lossOf(context, took, { nonce, leftAlone: false });
  if (loss !== undefined) {
    await rollback(context, took);
    return afterLoss(context, plan.familyPlans, loss);
  }
  const got = took.map(({ stored }) => stored.record.address);
  const addresses = [...plan.keep, ...got].sort(compareAddresses);
  const besideClaim = took
    .filter(({ alreadyHeld }) => alreadyHeld !== true)
    .map(({ stored }) => stored.record.address);
  const assigned = formatAddresses(addresses, placesIn(plan, got));
  return { ...heldAddresses(known), addresses, assigned, besideClaim };
}

/**
 * The claim stays as it is for its pod. Before its time to wait is over that begins anew, once: whoever goes on asking
 * for a pod that never comes holds its addresses no longer.
 */
export async function wait(context: Context, known: Stored<"claim">): Promise<Attempt> {
  const now = context.clock.now();
  const young = now - known.createdAt < HOLD_TIMEOUT_MS;
  if (!young || known.record.handMade === true || !waitsLong(known, now)) return heldAddresses(known);
  const replaced = await context.store.replace("claim", known, { ...known.record, admittedAt: now });
  if (replaced.kind !== "replaced") return { kind: "again" };
  return { ...heldAddresses(replaced.stored), waits: true };
}

/** Its time to wait for a pod is half over. */
export function waitsLong({ record: claim, createdAt }: Stored<"claim">, now: number): boolean {
  return (
    claim.binding === undefined && now - Math.max(createdAt, claim.admittedAt ?? 0) > HOLD_TIMEOUT_MS / 2
  );
}
