// SPDX-License-Identifier: Apache-2.0
// How the addresses of a plan are reserved, and the claim that lists them written.

import { isDefinite, isRefusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import type { Address } from "../ip/address.ts";
import { placesIn } from "../planning/interface-plan.ts";
import type { FamilyPlan, Plan } from "../planning/plan.ts";
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
import type { AllocationRequest, Attempt, Seen } from "./allocation-request.ts";
import { heldAddresses } from "./keep-addresses.ts";
import { quotaExceededNow, takenBack } from "./namespace-limit.ts";
import { type Taking, takeTogether } from "./take-together.ts";
import { claimOf, refusedBefore, refusedBy, undo, writeClaim } from "./write-claim.ts";

/** What is asked for, and by what. */
export interface Wanted {
  readonly allocation: AllocationRequest;
  readonly seen: Seen;
}

/** A new claim is written together with its reservations where the store and the plan allow that, otherwise after them. */
export async function takeAddresses(
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
  const claimWith = (got: readonly Address[]) => {
    const given = { addresses: [...plan.keep, ...got], places: placesIn(plan, got) };
    return claimOf(allocation, before, { ...given, nonce, now: context.clock.now(), seen });
  };
  const taking: Taking = { allocation, known, nonce, claimWith };
  const together = await takeTogether(context, taking, plan);
  if (together.kind === "created")
    return await withinQuota(context, together.claim, together.took, undefined);
  if (together.kind === "again") return together;
  return await takeSingly(context, taking, together.familyPlans);
}

/** Reservations first, then the claim, then the reservations are looked at once more; an attempt that breaks off is undone. */
async function takeSingly(
  context: Context,
  { allocation: { key: claim, constraints }, known, nonce, claimWith }: Taking,
  familyPlans: readonly FamilyPlan[],
): Promise<Attempt> {
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

/** The claim as it was just written, unless it exceeds its namespace's limit: then it is taken back. */
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
