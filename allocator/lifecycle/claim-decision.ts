// SPDX-License-Identifier: Apache-2.0
// Which addresses an identity is to have: the same decision for `reserve`, which writes it, and for a dry run.

import { isRefusal, type Refusal } from "../base/errors.ts";
import { sameSet } from "../base/same-set.ts";
import type { Context } from "../cache/context.ts";
import type { Reading } from "../cache/read-ahead.ts";
import type { Address } from "../ip/address.ts";
import { type Claim, isReserved } from "../model/claim.ts";
import { isAsPlanned, planAddresses } from "../planning/address-plan.ts";
import type { Plan } from "../planning/plan.ts";
import type { AllocationRequest, Seen } from "./allocation-request.ts";
import { isDetached } from "./bind.ts";
import {
  claimConflict,
  heldByOtherPod,
  inUseConflict,
  keptForWorkload,
  movesWithItsPod,
  userClaimConflict,
} from "./claim-conflicts.ts";
import {
  constraintsWithClaim,
  isRewired,
  withClaimByHand,
  withClaimOwner,
  withClaimSpec,
} from "./existing-claim.ts";
import { planBeside } from "./plan-beside.ts";

/**
 * How the decision learns what it needs. One that is going to be written may write to do so (take an orphan's mark away, make a hole in a
 * block); a dry run only reads.
 */
export interface Mode {
  readonly seen: Seen;
  /** Which of its addresses the claim may rely on. */
  readonly heldBy: (claim: Claim) => Promise<readonly Address[]>;
  /** Asked after the reservation was read: whether no node has the address in a block (ADR 0020). */
  readonly isFreeOfBlocks: (address: Address) => Promise<boolean>;
}

interface Decision {
  readonly kind: "decided";
  /** What was asked for, with what the claim says in its place. */
  readonly allocation: AllocationRequest;
  /** The claim's addresses that it may rely on. */
  readonly reliable: readonly Address[];
  readonly plan: Plan;
  /** The plan gives the claim other addresses than it has. */
  readonly moves: boolean;
}

/**
 * Decides in this order: whether it is the identity's claim, what is asked for, which addresses that gives, and whether the claim may
 * change to them now.
 */
export async function decide(
  context: Pick<Context, "view"> & { readonly store: Reading },
  requested: AllocationRequest,
  claim: Claim | undefined,
  mode: Mode,
): Promise<Decision | Refusal> {
  const said = withClaimSpec(requested, claim);
  const barred = barredFor(claim, said);
  if (barred !== undefined) return barred;
  const withClaim = withClaimByHand(context.view, said, claim);
  if (isRefusal(withClaim)) return withClaim;
  const allocation = await withClaimOwner(withClaim, claim);
  const reliable = claim === undefined ? [] : await mode.heldBy(claim);
  const plan = await planFor(context, allocation, { claim, held: reliable, mode });
  if (isRefusal(plan)) return plan;
  const rewired = isRewired(claim, plan);
  const moves = !isAsPlanned(plan, claim?.addresses ?? []) || rewired;
  const isOthers = allocation !== withClaim;
  const stuck = moves
    ? moveConflict(claim, { allocation, held: reliable, seen: mode.seen, isOthers, rewired })
    : undefined;
  return stuck ?? { kind: "decided", allocation, reliable, plan, moves };
}

function barredFor(
  claim: Claim | undefined,
  { identity, userRequested, key }: AllocationRequest,
): Refusal | undefined {
  return (
    claimConflict(claim, identity) ?? (userRequested === true ? userClaimConflict(claim, key) : undefined)
  );
}

async function planFor(
  context: Pick<Context, "view"> & { readonly store: Reading },
  allocation: AllocationRequest,
  now: { readonly claim: Claim | undefined; readonly held: readonly Address[]; readonly mode: Mode },
): Promise<Plan | Refusal> {
  const { claim, held, mode } = now;
  const constraints = constraintsWithClaim(allocation, claim, held);
  const direct = planAddresses(context.view, constraints);
  if (mode.seen !== "nothing" || claim === undefined || !isReserved(claim)) return direct;
  return await planBeside(context, constraints, { claim, held, isFreeOfBlocks: mode.isFreeOfBlocks }, direct);
}

interface Move {
  readonly allocation: AllocationRequest;
  readonly held: readonly Address[];
  readonly seen: Seen;
  /** The claim is kept for a workload, and whoever asks is not of it. */
  readonly isOthers: boolean;
  /** Its addresses would go to other interfaces. */
  readonly rewired: boolean;
}

/** Why the claim cannot have other addresses now. */
function moveConflict(
  claim: Claim | undefined,
  { allocation, held, seen, isOthers, rewired }: Move,
): Refusal | undefined {
  const others = heldByOtherPod(claim, allocation);
  // a claim that has lost all its addresses may get others, unless a sandbox may still have the old ones: then these are reserved again
  const isLost = claim !== undefined && held.length === 0 && isDetached(claim);
  if (claim === undefined || isLost || (!rewired && isRepair(claim, allocation))) return others;
  if (isOthers) return keptForWorkload(claim, allocation.constraints);
  if (others !== undefined) return others;
  return (
    inUseConflict(claim, allocation.constraints) ??
    (seen === "workload" ? movesWithItsPod(claim, allocation.constraints) : undefined)
  );
}

/** The request is for the addresses that the claim lists already: those that it has lost are reserved again, nothing else changes. */
function isRepair(claim: Claim, { constraints: { addresses } }: AllocationRequest): boolean {
  return addresses !== undefined && sameSet(addresses, claim.addresses);
}
