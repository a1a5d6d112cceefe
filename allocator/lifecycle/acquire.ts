// SPDX-License-Identifier: Apache-2.0

import { BerthError, isDefinite, type Refusal } from "../base/errors.ts";
import type { Clock } from "../base/ports.ts";
import type { Context } from "../cache/context.ts";
import { cooldownOf } from "../cache/cooldown.ts";
import type { Address } from "../ip/address.ts";
import type { Block } from "../model/block.ts";
import { type ClaimKey, claimKey, isPredecessor } from "../model/claim.ts";
import type { Reservation } from "../model/reservation.ts";
import type { FamilyPlan, Predecessor } from "../planning/plan.ts";
import { addressInBlock, addressTaken } from "../planning/refusal-messages.ts";
import type { Store, Stored } from "../store/store.ts";
import type { Contended } from "./allocation-request.ts";
import { blockAgainst } from "./block-conflict.ts";
import {
  cooldown,
  cooldownOrphan,
  deleteOrphan,
  ensureUnmarked,
  handOverOrphan,
  isBrokenOff,
} from "./orphan-mark.ts";
import { inOneOrder, spreadOut } from "./spread-candidates.ts";

/** For which claim reservations are taken, and how each is taken. */
interface AcquireInput {
  readonly context: Context;
  readonly claim: ClaimKey;
  readonly nonce: string;
  readonly take: (context: Context, wanted: Reservation) => Promise<Take>;
}

/** Takes one reservation for each plan and answers in their order, or takes none: what was taken before a refusal is given back. */
export async function acquireAll(
  taking: AcquireInput,
  familyPlans: readonly FamilyPlan[],
): Promise<Acquired[] | Refusal | Contended> {
  const took = new Map<FamilyPlan, Acquired>();
  for (const familyPlan of inOneOrder(familyPlans)) {
    const got = await takeOne(taking, familyPlan).catch(async (error: unknown) => {
      if (isDefinite(error)) await rollback(taking.context, [...took.values()]);
      throw error;
    });
    if (got.kind !== "took") {
      await rollback(taking.context, [...took.values()]);
      return got;
    }
    took.set(familyPlan, got);
  }
  return familyPlans.flatMap((familyPlan) => took.get(familyPlan) ?? []);
}

export interface Acquired {
  readonly kind: "took";
  readonly stored: Stored<"reservation">;
  /** It was cooling since then when it was taken; given back, it cools on. */
  readonly cooling?: number;
  /** The identity had it already; nothing was written. */
  readonly alreadyHeld?: boolean;
}

type Take = Acquired | { readonly kind: "taken"; readonly by: Reservation } | Contended;

async function takeOne(
  taking: AcquireInput,
  familyPlan: FamilyPlan,
): Promise<Exclude<Take, { kind: "taken" }> | Refusal> {
  const { context, claim, nonce } = taking;
  const key = claimKey(claim);
  const ordered = spreadOut(familyPlan.candidates, { spread: context.spread, claim: key });
  for (const { address, pool: from } of ordered) {
    const wanted = { address, pool: from, claim, nonce };
    context.spread?.tries(address, key);
    const got = familyPlan.exact ? await taking.take(context, wanted) : await takeReadable(taking, wanted);
    if (got?.kind === "took") return got;
    if (!familyPlan.exact || got === undefined) continue;
    if (got.kind === "contended") return got;
    const pool = context.view.pool(from);
    return pool === undefined ? familyPlan.exhausted() : addressTaken(context.view, pool, address, got.by);
  }
  return familyPlan.exhausted();
}

/** Undefined for an address whose reservation cannot be read: somebody has it, and other addresses will do. */
async function takeReadable({ context, take }: AcquireInput, wanted: Reservation): Promise<Take | undefined> {
  try {
    return await take(context, wanted);
  } catch (error) {
    if (error instanceof BerthError && error.code === "STATE_CORRUPT") return undefined;
    throw error;
  }
}

/** Takes exactly this address, unless another identity has it (`taken`) or another process is changing it at this moment (`contended`). */
export async function acquireCandidate(context: Context, wanted: Reservation): Promise<Take> {
  const result = await context.store.create("reservation", wanted);
  if (result.kind === "created") return { kind: "took", stored: result.stored };
  return await takeFound(context, result.stored, wanted);
}

/**
 * As `acquireCandidate`, for a pod that nobody has seen yet. A reservation that the identity has already, held or cooling, is not
 * written: asking again must not make it last longer, and nobody else can have the address meanwhile.
 */
export async function holdCandidate(context: Context, wanted: Reservation): Promise<Take> {
  const result = await context.store.create("reservation", wanted);
  if (result.kind === "created") return { kind: "took", stored: result.stored };
  const { stored: found } = result;
  const { record } = found;
  const cools = record.releasedAt !== undefined && !isCooldownOver(context, found);
  const held = record.releasedAt === undefined && record.nonce === wanted.nonce;
  if (claimKey(record.claim) === claimKey(wanted.claim) && (cools || held)) {
    return { kind: "took", stored: found, alreadyHeld: true };
  }
  return await takeFound(context, found, wanted);
}

/**
 * As `acquireCandidate`, for a claim that takes over from another one of its namespace: it gets at once what that claim has given back.
 * A reservation that was not given back and has no claim may still be in a sandbox, unless the claim was seen unused.
 */
export function takeFrom(from: Predecessor | undefined): AcquireInput["take"] {
  if (from === undefined) return acquireCandidate;
  return async (context, wanted) => {
    const result = await context.store.create("reservation", wanted);
    if (result.kind === "created") return { kind: "took", stored: result.stored };
    const { stored: found } = result;
    if (!isLeftBy(from, found.record, wanted.claim)) return await takeFound(context, found, wanted);
    // not given back: another process may have made it, and be about to write its claim
    if (found.record.releasedAt === undefined && !isBrokenOff(context, found)) return { kind: "contended" };
    const outcome = await handOverOrphan(context, found, wanted);
    if (outcome === "relied") return { kind: "taken", by: found.record };
    if (outcome === "changed") return { kind: "contended" };
    // if this attempt fails, the reservation cools like any that was given back: the claim that it was taken from is gone
    const cooling = found.record.releasedAt ?? context.clock.now();
    return { kind: "took", stored: outcome.stored, cooling };
  };
}

/** Whether the reservation was made for the predecessor and may be taken over, if no claim relies on it. */
export function isLeftBy(
  from: Predecessor | undefined,
  { claim, releasedAt }: Reservation,
  to: ClaimKey,
): boolean {
  if (from === undefined || !isPredecessor(claim, to, from.name)) return false;
  return from.wasUnused || releasedAt !== undefined;
}

async function takeFound(context: Context, found: Stored<"reservation">, wanted: Reservation): Promise<Take> {
  if (claimKey(found.record.claim) === claimKey(wanted.claim))
    return await reacquireOwn(context, found, wanted);
  if (
    isCooldownOver(context, found) &&
    (await context.store.remove("reservation", found)).kind === "removed"
  ) {
    return await createAgain(context, wanted);
  }
  return { kind: "taken", by: found.record };
}

/** The reservation is the identity's own: it cools, or an attempt that broke off left it, or an attempt of another process is under way. */
async function reacquireOwn(
  context: Context,
  found: Stored<"reservation">,
  wanted: Reservation,
): Promise<Take> {
  const { releasedAt: cooling, nonce } = found.record;
  if (cooling !== undefined || nonce === wanted.nonce) {
    const retaken = await context.store.replace("reservation", found, wanted);
    if (retaken.kind !== "replaced") return { kind: "contended" };
    return { kind: "took", stored: retaken.stored, ...(cooling === undefined ? {} : { cooling }) };
  }
  if (!isBrokenOff(context, found)) return { kind: "contended" };
  const collected = await deleteOrphan(context, found);
  return collected === "removed" ? await createAgain(context, wanted) : { kind: "contended" };
}

async function createAgain(context: Context, wanted: Reservation): Promise<Take> {
  const again = await context.store.create("reservation", wanted);
  if (again.kind === "created") return { kind: "took", stored: again.stored };
  const by = again.stored.record;
  return claimKey(by.claim) === claimKey(wanted.claim) ? { kind: "contended" } : { kind: "taken", by };
}

/** It was given back so long ago that anybody may have the address. */
export function isCooldownOver(
  context: Pick<Context, "view" | "clock">,
  { record }: Stored<"reservation">,
): boolean {
  return (
    record.releasedAt !== undefined &&
    context.clock.now() >= record.releasedAt + cooldownOf(context.view, record)
  );
}

/**
 * Gives back what was taken, newest first; what was cooling cools on. A reservation that a claim relies on by now stays, as with
 * the garbage collector.
 */
export async function rollback(context: Context, took: readonly Acquired[]): Promise<void> {
  for (const { stored, cooling, alreadyHeld } of [...took].reverse()) {
    if (alreadyHeld === true) continue;
    if (cooling === undefined) await deleteOrphan(context, stored);
    else await cooldownOrphan(context, stored, cooling);
  }
}

/**
 * Gives back what nobody can have come to rely on: its nonce was made for a claim that was not created. Unlike
 * `rollback` it does not read the claim, which may be one that cannot be read.
 */
export async function rollbackUnused(
  context: Pick<Context, "store" | "view">,
  took: readonly Acquired[],
): Promise<void> {
  for (const { stored, cooling } of [...took].reverse()) {
    if (cooling === undefined) await context.store.remove("reservation", stored);
    else await cooldown(context, stored, cooling);
  }
}

/** From the first reservation's create until the claim's was answered. */
const QUICK_MS = 500;

/**
 * Whether no reservation can have been marked as an orphan before its claim was written, because both were written within a second:
 * others mark only what has had no claim for longer than that. Both clocks must say so, this process's monotonic one and the store's
 * stamps: the first does not count while the machine is suspended. False: not known, and the reservations have to be read back. Only for
 * a new claim, with a nonce of its own.
 */
export function wereLeftAlone(
  {
    store: { stampsSeconds },
    clock,
  }: { store: Pick<Store, "stampsSeconds">; clock: Pick<Clock, "monotonic"> },
  took: readonly Acquired[],
  { written: { createdAt }, since }: { readonly written: Stored<"claim">; readonly since: number },
): boolean {
  if (clock.monotonic() - since > QUICK_MS) return false;
  const isFresh = ({ stored, cooling, alreadyHeld }: Acquired) =>
    cooling === undefined && alreadyHeld !== true && stored.createdAt === createdAt;
  return stampsSeconds === true && took.every(isFresh);
}

/** Why the claim does not have what was taken for it after all. */
type Loss =
  | { readonly kind: "lost" }
  | { readonly kind: "block"; readonly address: Address; readonly pool: string; readonly block: Block };

/**
 * Reads the reservations back after the claim was written: before that the garbage collector may have taken them for orphans, unless
 * `leftAlone`, and a node may have been granted the block that they are in. Those that cool are not looked at.
 */
export async function lossOf(
  context: Context,
  took: readonly Acquired[],
  { nonce, leftAlone }: { readonly nonce: string; readonly leftAlone: boolean },
): Promise<Loss | undefined> {
  for (const { stored } of took) {
    const { address, pool, releasedAt } = stored.record;
    if (releasedAt !== undefined) continue;
    if (!leftAlone && !(await ensureUnmarked(context.store, address, nonce))) return { kind: "lost" };
    const block = await blockAgainst(context, address);
    if (block !== undefined) return { kind: "block", address, pool, block };
  }
  return undefined;
}

/** How an attempt that lost what it took goes on: it is made again, or refused where the address that is in a block was asked for by name. */
export function afterLoss(
  { view }: Context,
  familyPlans: readonly FamilyPlan[],
  loss: Loss | undefined,
): Refusal | Contended | { readonly kind: "again" } {
  if (loss?.kind !== "block") return { kind: "again" };
  const pool = view.pool(loss.pool);
  if (pool === undefined) return { kind: "contended" };
  const because = addressInBlock(view, pool, loss.address, loss.block);
  return familyPlans.some(({ exact }) => exact) ? because : { kind: "contended", because };
}
