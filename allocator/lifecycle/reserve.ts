// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { BerthError, isDefinite, isRefusal, type Refusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import { readClaim } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { type Claim, claimKey, isKeptByOthers, isReserved } from "../model/claim.ts";
import { isHeldBy } from "../model/reservation.ts";
import { placesIn } from "../planning/interface-plan.ts";
import type { Plan } from "../planning/plan.ts";
import { MAX_ATTEMPTS } from "../store/retry-on-conflict.ts";
import type { Stored } from "../store/store.ts";
import {
  type Acquired,
  acquireAll,
  afterLoss,
  lossOf,
  rollback,
  rollbackUnused,
  takeFrom,
  wereLeftAlone,
} from "./acquire.ts";
import type { AllocationRequest, Attempt, Reserved, Seen } from "./allocation-request.ts";
import { deletionPending } from "./bind.ts";
import { blockAgainst, ensureReliable } from "./block-conflict.ts";
import { podGone } from "./claim-conflicts.ts";
import { decide, type Mode } from "./claim-decision.ts";
import { heldAddresses, reserveBeside, wait, waitsLong } from "./keep-addresses.ts";
import { keepForPod, keepFromUndo } from "./keep-from-undo.ts";
import { aloneNearLimit, quotaExceededNow, takenBack } from "./namespace-limit.ts";
import { meetings } from "./orphan-age.ts";
import { hasToCool, release, startCooldownIfDropped } from "./release.ts";
import { isRetainedBeyondHold } from "./retention-limits.ts";
import { type Together, takeTogether } from "./take-together.ts";
import { claimOf, refusedBefore, refusedBy, undo, writeClaim } from "./write-claim.ts";

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
  // what a person made he may have deleted or changed a moment ago, which the view did not hear of
  let sure = !isNew && (known?.record.handMade !== true || allocation.userRequested === true);
  let last: Attempt | undefined;
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    const current = await finished(context, known);
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

/** A node has what was picked each time, or nobody knows why it did not last. */
function stillContended(key: string, last: Attempt | undefined): Refusal {
  if (last?.kind === "contended" && last.because !== undefined) return last.because;
  throw new BerthError("REVISION_CONFLICT", `claim ${key} kept changing while it was reserved`, {
    details: { claim: key },
  });
}

/**
 * A claim that the view lacks is not there, almost always, and creating it is the proof: no need to read it first. An
 * ordinal's claim is made in advance, by another replica perhaps a moment ago.
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
 * Whoever began to give the claim back may have stopped half-way; what then cools is this identity's own to take. One that somebody
 * else's finalizer keeps needs that once: each review of its name would release it anew.
 */
async function finished(
  context: Context,
  known: Stored<"claim"> | undefined,
): Promise<Stored<"claim"> | undefined> {
  if (known?.record.releasing !== true) return known;
  if (isKeptByOthers(known.record) && !hasToCool(context, known.record)) return known;
  await release(context, known);
  return await context.store.get("claim", known.key);
}

/** What is given back goes in a moment, or when others let it go. */
function notGone({ record, finalizers }: Stored<"claim">): Attempt {
  return isKeptByOthers(record) ? deletionPending(record, finalizers) : { kind: "contended" };
}

async function tryReserve(
  context: Context,
  requested: AllocationRequest,
  known: Stored<"claim"> | undefined,
  seen: Seen,
): Promise<Attempt> {
  if (known?.record.releasing === true) return notGone(known);
  const decision = await decide(context, requested, known?.record, committing(context, seen));
  if (isRefusal(decision)) return decision;
  const { allocation, reliable, plan, moves } = decision;
  if (known === undefined || !isReserved(known.record))
    return await take(context, { allocation, seen }, known, plan);
  const stays = seen === "nothing" || (!moves && isCurrent(context, known, allocation));
  const lacks = reliable.length < known.record.addresses.length;
  const isAssigned = stays && seen !== "workload";
  const keep = lacks ? keepFromUndo : keepForPod;
  const current = lacks || isAssigned ? await keep(context, known) : known;
  if (current === undefined) return { kind: "again" };
  if (!stays) return await change(context, { allocation, seen }, current, plan);
  if (seen !== "nothing") return heldAddresses(current);
  return moves ? await reserveBeside(context, allocation, current, plan) : await wait(context, current);
}

function committing(context: Context, seen: Seen): Mode {
  return {
    seen,
    heldBy: ({ addresses, nonce }) => sureOf(context, addresses, nonce),
    isFreeOfBlocks: async (address) => (await blockAgainst(context, address)) === undefined,
  };
}

/** What is asked for, and by what. */
interface Wanted {
  readonly allocation: AllocationRequest;
  readonly seen: Seen;
}

/** What the claim has no more cools. */
async function change(
  context: Context,
  wanted: Wanted,
  known: Stored<"claim">,
  plan: Plan,
): Promise<Attempt> {
  const { allocation } = wanted;
  if (allocation.isThere !== undefined && !(await allocation.isThere())) return podGone(allocation.key);
  const attempt = await take(context, wanted, known, plan);
  if (attempt.kind !== "reserved") return attempt;
  const { addresses, nonce } = attempt.claim.record;
  for (const address of known.record.addresses) {
    if (!addresses.includes(address)) await startCooldownIfDropped(context, address, nonce);
  }
  return attempt;
}

/**
 * Which of its addresses a claim may rely on: those that the view shows reserved for it cost nothing, the others are
 * looked up. A reserver that was collected while it paused may be about to take its claim back, or may have crashed.
 */
async function sureOf(context: Context, listed: readonly Address[], nonce: string): Promise<Address[]> {
  const sure: Address[] = [];
  for (const address of listed) {
    const shown = context.view.reservation(address)?.record;
    const isSeenHeld =
      shown !== undefined && isHeldBy(shown, nonce) && context.view.blockOwning?.(address) === undefined;
    if (isSeenHeld || (await ensureReliable(context, address, nonce))) sure.push(address);
  }
  return sure;
}

/** Reservations, then the claim, then the reservations once more; whatever breaks off is undone. */
async function take(
  context: Context,
  { allocation, seen }: Wanted,
  known: Stored<"claim"> | undefined,
  plan: Plan,
): Promise<Attempt> {
  const before = known?.record;
  const nonce = before === undefined || before.nonce === "" ? context.random.token() : before.nonce;
  const now = context.clock.now();
  const refused =
    known === undefined
      ? await refusedBefore(context, claimOf(allocation, before, { addresses: [], nonce, now, seen }))
      : undefined;
  if (refused !== undefined) return refused;
  const { key: claim, constraints } = allocation;
  const claimWith = (got: readonly Address[]) => {
    const given = { addresses: [...plan.keep, ...got], places: placesIn(plan, got) };
    return claimOf(allocation, before, { ...given, nonce, now: context.clock.now(), seen });
  };
  const together: Together =
    known === undefined
      ? await takeTogether(context, allocation, plan, { nonce, claimWith })
      : { kind: "single", familyPlans: plan.familyPlans };
  if (together.kind === "created")
    return await withinQuota(context, together.claim, together.took, undefined);
  if (together.kind === "again") return together;
  const { familyPlans } = together;
  const since = context.clock.monotonic();
  const took = await acquireAll(
    { context, claim, nonce, take: takeFrom(constraints.takesOver) },
    familyPlans,
  );
  if (!Array.isArray(took)) return took;
  const next = claimWith(took.map(({ stored }) => stored.record.address));
  const written = await writeClaim(context, known, next).catch(async (error: unknown) => {
    if (isDefinite(error)) await (known === undefined ? rollbackUnused : rollback)(context, took);
    return refusedBy(error, next);
  });
  if (isRefusal(written)) return written;
  const leftAlone =
    known === undefined && written !== undefined && wereLeftAlone(context, took, { written, since });
  const loss = written === undefined ? undefined : await lossOf(context, took, { nonce, leftAlone });
  if (written !== undefined && loss === undefined) return await withinQuota(context, written, took, known);
  if (written !== undefined) await undo(context, written, known);
  await rollback(context, took);
  return afterLoss(context, familyPlans, loss);
}

/** The claim as it was just written, unless its namespace has too much by it: then it is taken back. */
async function withinQuota(
  context: Context,
  written: Stored<"claim">,
  took: readonly Acquired[],
  before: Stored<"claim"> | undefined,
): Promise<Attempt> {
  const made = before === undefined;
  const beyond = took.length === 0 ? undefined : await quotaExceededNow(context, written.record, took);
  if (beyond === undefined || (await takenBack(context, written, before)) === "kept")
    return { ...heldAddresses(written), made, waits: made };
  await rollback(context, took);
  return beyond;
}

/** Nothing about the claim would be written again, and it does not wait for its pod for so long that its time is almost over. */
function isCurrent({ view, clock }: Context, known: Stored<"claim">, allocation: AllocationRequest): boolean {
  const { record: claim } = known;
  const now = clock.now();
  if (claim.handMade !== true && waitsLong(known, now)) return false;
  const { retained: _, ...takenUp } = claim; // binding it takes that away
  return isUpToDate(isRetainedBeyondHold(view, claim, now) ? takenUp : claim, allocation);
}

/** The claim is of this owner, with this retention and request, and is not set aside; what a person wrote stays as it is. */
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
