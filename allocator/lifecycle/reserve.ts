// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { BerthError, isRefusal, type Refusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import { readClaim } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { type Claim, claimKey, isKeptByOthers, isReserved } from "../model/claim.ts";
import { isHeldBy } from "../model/reservation.ts";
import type { Plan } from "../planning/plan.ts";
import { MAX_ATTEMPTS } from "../store/retry-on-conflict.ts";
import type { Stored } from "../store/store.ts";
import type { AllocationRequest, Attempt, Reserved, Seen } from "./allocation-request.ts";
import { deletionPending } from "./bind.ts";
import { blockAgainst, ensureReliable } from "./block-conflict.ts";
import { podGone } from "./claim-conflicts.ts";
import { decide, type Mode } from "./claim-decision.ts";
import { heldAddresses, reserveBeside, wait, waitsLong } from "./keep-addresses.ts";
import { keepForPod, keepFromUndo } from "./keep-from-undo.ts";
import { aloneNearLimit } from "./namespace-limit.ts";
import { meetings } from "./orphan-mark.ts";
import { hasToCool, release, startCooldownIfDropped } from "./release.ts";
import { isRetainedBeyondHold } from "./retention-limits.ts";
import { takeAddresses, type Wanted } from "./take-addresses.ts";

/**
 * Takes what the identity needs, all families or none, and answers with its claim; the claim that is there already
 * if it still fits. Two writes for a new identity, none for one that has its claim.
 *
 * Reservations first, each created under the address's name, which is what makes two winners impossible; then the
 * claim; then the reservations are read back where a garbage collector may have thought them orphans in between.
 * Throws REVISION_CONFLICT when records keep changing, and what the store throws.
 */
export async function reserve(
  context: Context,
  allocation: AllocationRequest,
  seen: Seen,
): Promise<Reserved | Refusal> {
  const attempt = { ...context, metFor: meetings(context.clock) };
  return await context.serial.run(claimKey(allocation.key), () => reserveAlone(attempt, allocation, seen));
}

async function reserveAlone(
  context: Context,
  allocation: AllocationRequest,
  seen: Seen,
): Promise<Reserved | Refusal> {
  const key = claimKey(allocation.key);
  const isNew = looksNew(context, allocation);
  let known = isNew ? undefined : await knownClaim(context, allocation);
  // a person may have deleted or changed a claim of theirs a moment ago, and the view not have heard of it
  let sure = !isNew && (known?.record.handMade !== true || allocation.userRequested === true);
  let last: Attempt | undefined;
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    const current = await withReleaseFinished(context, known);
    const attempt = await aloneNearLimit(context, allocation.constraints, () =>
      tryReserve(context, allocation, current, seen),
    );
    if (attempt.kind === "reserved" || (attempt.kind === "refused" && sure)) return attempt;
    last = attempt;
    if (attempt.kind === "contended" && sure)
      await context.clock.sleep(100 + 100 * context.random.fraction());
    known = await context.store.get("claim", key);
    // a quota refuses before anybody looks whether the claim is there
    if (known === undefined && attempt.kind === "refused" && attempt.code === "CLAIM_REFUSED") return attempt;
    sure = true;
  }
  return stillContended(key, last);
}

/** After the last attempt: each time a node's block had the picked address, or the records kept changing for an unknown reason. */
function stillContended(key: string, last: Attempt | undefined): Refusal {
  if (last?.kind === "contended" && last.because !== undefined) return last.because;
  throw new BerthError("REVISION_CONFLICT", `claim ${key} kept changing while it was reserved`, {
    details: { claim: key },
  });
}

/**
 * A claim that the view does not have is almost always not there, and creating it proves that: it need not be read first. Except for an
 * ordinal's, which is made in advance, perhaps by another replica a moment ago.
 */
function looksNew(
  { view }: Context,
  { key, identity, userRequested, followsClaim }: AllocationRequest,
): boolean {
  if (userRequested === true || followsClaim !== undefined || identity.ordinal !== undefined) return false;
  return view.claim(claimKey(key)) === undefined;
}

async function knownClaim(
  context: Context,
  { key, userRequested }: AllocationRequest,
): Promise<Stored<"claim"> | undefined> {
  const name = claimKey(key);
  return userRequested === true ? await context.store.get("claim", name) : await readClaim(context, name);
}

/**
 * Finishes a release that may have stopped half-way: what then cools this identity may take again. A claim that somebody else's
 * finalizer keeps is not released once more if everything of it cools already: each review of its name would write it again.
 */
async function withReleaseFinished(
  context: Context,
  known: Stored<"claim"> | undefined,
): Promise<Stored<"claim"> | undefined> {
  if (known?.record.releasing !== true) return known;
  if (isKeptByOthers(known.record) && !hasToCool(context, known.record)) return known;
  await release(context, known);
  return await context.store.get("claim", known.key);
}

/** The claim is being released: it is gone in a moment, or once others remove their finalizers. */
function stillReleasing({ record, finalizers }: Stored<"claim">): Attempt {
  return isKeptByOthers(record) ? deletionPending(record, finalizers) : { kind: "contended" };
}

async function tryReserve(
  context: Context,
  requested: AllocationRequest,
  known: Stored<"claim"> | undefined,
  seen: Seen,
): Promise<Attempt> {
  if (known?.record.releasing === true) return stillReleasing(known);
  const decision = await decide(context, requested, known?.record, writingMode(context, seen));
  if (isRefusal(decision)) return decision;
  const { allocation, reliable, plan, moves } = decision;
  if (known === undefined || !isReserved(known.record))
    return await takeAddresses(context, { allocation, seen }, known, plan);
  const stays = seen === "nothing" || (!moves && isCurrent(context, known, allocation));
  const lacks = reliable.length < known.record.addresses.length;
  const isAssigned = stays && seen !== "workload";
  const keep = lacks ? keepFromUndo : keepForPod;
  const current = lacks || isAssigned ? await keep(context, known) : known;
  if (current === undefined) return { kind: "again" };
  if (!stays) return await changeAddresses(context, { allocation, seen }, current, plan);
  if (seen !== "nothing") return heldAddresses(current);
  return moves ? await reserveBeside(context, allocation, current, plan) : await wait(context, current);
}

function writingMode(context: Context, seen: Seen): Mode {
  return {
    seen,
    heldBy: ({ addresses, nonce }) => reliableOf(context, addresses, nonce),
    isFreeOfBlocks: async (address) => (await blockAgainst(context, address)) === undefined,
  };
}

/** Gives the claim other addresses; those that it loses are set to cooling. */
async function changeAddresses(
  context: Context,
  wanted: Wanted,
  known: Stored<"claim">,
  plan: Plan,
): Promise<Attempt> {
  const { allocation } = wanted;
  if (allocation.isThere !== undefined && !(await allocation.isThere())) return podGone(allocation.key);
  const attempt = await takeAddresses(context, wanted, known, plan);
  if (attempt.kind !== "reserved") return attempt;
  const { addresses, nonce } = attempt.claim.record;
  for (const address of known.record.addresses) {
    if (!addresses.includes(address)) await startCooldownIfDropped(context, address, nonce);
  }
  return attempt;
}

/**
 * Which of its addresses a claim may rely on: those that the view shows reserved for it, without a read, and of the others those that the
 * store has so. The process that wrote the claim may have paused until its reservations were collected, and be about to take the claim
 * back, or may have crashed.
 */
async function reliableOf(context: Context, listed: readonly Address[], nonce: string): Promise<Address[]> {
  const sure: Address[] = [];
  for (const address of listed) {
    const shown = context.view.reservation(address)?.record;
    const isSeenHeld =
      shown !== undefined && isHeldBy(shown, nonce) && context.view.blockOwning?.(address) === undefined;
    if (isSeenHeld || (await ensureReliable(context, address, nonce))) sure.push(address);
  }
  return sure;
}

/** Nothing of the claim would be written anew, and the time that it waits for its pod is not almost over. */
function isCurrent({ view, clock }: Context, known: Stored<"claim">, allocation: AllocationRequest): boolean {
  const { record: claim } = known;
  const now = clock.now();
  if (claim.handMade !== true && waitsLong(known, now)) return false;
  const { retained: _, ...takenUp } = claim; // binding the claim ends the retention
  return isUpToDate(isRetainedBeyondHold(view, claim, now) ? takenUp : claim, allocation);
}

/** The claim has this owner, retention and request, and is not retained; a claim that a person made stays as it is. */
export function isUpToDate(claim: Claim, { identity, retention, request }: AllocationRequest): boolean {
  if (claim.handMade === true) return true;
  return (
    claim.retained === undefined &&
    claim.identity.kind === identity.kind &&
    claim.identity.name === identity.name &&
    (identity.uid === undefined || claim.identity.uid === identity.uid) &&
    isDeepStrictEqual(claim.retention, retention) &&
    isDeepStrictEqual(claim.request, request)
  );
}
