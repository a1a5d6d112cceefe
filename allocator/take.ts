// SPDX-License-Identifier: Apache-2.0
import { type ClaimKey, claimKey } from "./claim.ts";
import type { Context } from "./context.ts";
import { BerthError, type Refusal } from "./errors.ts";
import type { Lot } from "./plan.ts";
import { coolReservation, reapReservation, rely } from "./reap.ts";
import { taken } from "./refusals.ts";
import type { Reservation } from "./reservation.ts";
import type { Stored } from "./store/store.ts";

/** After this long a reservation without its claim was left by a crash, not by a reserver at work. A guess: reaping is safe at any time. */
const BROKEN_OFF_MS = 1_500;

/** Another process is at work on the same identity. */
type Contended = { readonly kind: "contended" };

/** One reservation for each lot, or none: what was taken before a refusal is given back. */
export async function takeAll(
  context: Context,
  lots: readonly Lot[],
  claim: ClaimKey,
  nonce: string,
): Promise<Took[] | Refusal | Contended> {
  const took: Took[] = [];
  for (const lot of lots) {
    const got = await takeOne(context, lot, claim, nonce);
    if (got.kind !== "took") {
      await giveBack(context, took);
      return got;
    }
    took.push(got);
  }
  return took;
}

export interface Took {
  readonly kind: "took";
  readonly stored: Stored<"reservation">;
  /** Taken back while it was cooling, since then. */
  readonly cooling?: number;
}

type Take = Took | { readonly kind: "taken"; readonly by: Reservation } | Contended;

async function takeOne(
  context: Context,
  lot: Lot,
  claim: ClaimKey,
  nonce: string,
): Promise<Exclude<Take, { kind: "taken" }> | Refusal> {
  for (const candidate of lot.candidates) {
    const wanted = { ...candidate, claim, nonce };
    const got = lot.exact ? await takeCandidate(context, wanted) : await takeReadable(context, wanted);
    if (got?.kind === "took") return got;
    if (!lot.exact || got === undefined) continue;
    if (got.kind === "contended") return got;
    const pool = context.view.pool(candidate.pool);
    return pool === undefined ? lot.exhausted() : taken(context.view, pool, candidate.address, got.by);
  }
  return lot.exhausted();
}

/** Undefined for an address whose reservation cannot be read: it is somebody's, and there are others to pick. */
async function takeReadable(context: Context, wanted: Reservation): Promise<Take | undefined> {
  try {
    return await takeCandidate(context, wanted);
  } catch (error) {
    if (error instanceof BerthError && error.code === "STATE_CORRUPT") return undefined;
    throw error;
  }
}

/** Takes exactly this, unless another identity has it (`taken`) or another process is at work on it (`contended`). */
export async function takeCandidate(context: Context, wanted: Reservation): Promise<Take> {
  const result = await context.store.create("reservation", wanted);
  if (result.kind === "created") return { kind: "took", stored: result.stored };
  const found = result.stored;
  if (claimKey(found.record.claim) === claimKey(wanted.claim)) return await takeOwn(context, found, wanted);
  if (cooledOff(context, found) && (await context.store.remove("reservation", found)).kind === "removed") {
    return await createAgain(context, wanted);
  }
  return { kind: "taken", by: found.record };
}

/** The identity's own: cooling, or left by an attempt that broke off, or by one that is still under way elsewhere. */
async function takeOwn(context: Context, found: Stored<"reservation">, wanted: Reservation): Promise<Take> {
  const { releasedAt: cooling, nonce } = found.record;
  if (cooling !== undefined || nonce === wanted.nonce) {
    const retaken = await context.store.replace("reservation", found, wanted);
    if (retaken.kind !== "replaced") return { kind: "contended" };
    return { kind: "took", stored: retaken.stored, ...(cooling === undefined ? {} : { cooling }) };
  }
  if (context.clock.now() - found.createdAt < BROKEN_OFF_MS) return { kind: "contended" };
  const reaped = await reapReservation(context, found);
  return reaped === "removed" ? await createAgain(context, wanted) : { kind: "contended" };
}

async function createAgain(context: Context, wanted: Reservation): Promise<Take> {
  const again = await context.store.create("reservation", wanted);
  if (again.kind === "created") return { kind: "took", stored: again.stored };
  const by = again.stored.record;
  return claimKey(by.claim) === claimKey(wanted.claim) ? { kind: "contended" } : { kind: "taken", by };
}

/** Given back so long ago that anybody may have the address. */
export function cooledOff(
  context: Pick<Context, "view" | "clock">,
  { record }: Stored<"reservation">,
): boolean {
  const cooldownMs = context.view.pool(record.pool)?.cooldownMs ?? 0;
  return record.releasedAt !== undefined && context.clock.now() >= record.releasedAt + cooldownMs;
}

/**
 * Newest first; what was cooling goes on cooling. A reservation that somebody has come to rely on stays: the reaper's
 * rule decides.
 */
export async function giveBack(context: Context, took: readonly Took[]): Promise<void> {
  for (const { stored, cooling } of [...took].reverse()) {
    if (cooling === undefined) await reapReservation(context, stored);
    else await coolReservation(context, stored, cooling);
  }
}

/**
 * Gives back what nobody can have come to rely on: its nonce was made for a claim that was not created. Unlike
 * `giveBack` it does not read the claim, which may be one that cannot be read.
 */
export async function withdraw({ store }: Pick<Context, "store">, took: readonly Took[]): Promise<void> {
  for (const { stored, cooling } of [...took].reverse()) {
    if (cooling === undefined) await store.remove("reservation", stored);
    else await store.replace("reservation", stored, { ...stored.record, releasedAt: cooling });
  }
}

/** Reads them back: a reaper may have thought them orphans before their claim was written. */
export async function confirm(context: Context, took: readonly Took[], nonce: string): Promise<boolean> {
  for (const { stored } of took) {
    if (!(await rely(context.store, stored.key, nonce))) return false;
  }
  return true;
}
