// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { type Address, compareAddresses } from "./address.ts";
import { PROMISE_MS } from "./bind.ts";
import {
  type Binding,
  type Claim,
  type ClaimKey,
  type ClaimRequest,
  claimKey,
  type Identity,
  isReserved,
  type Retention,
} from "./claim.ts";
import { followed } from "./claim-ask.ts";
import { type Context, MAX_ROUNDS } from "./context.ts";
import { BerthError, isRefusal, type Refusal } from "./errors.ts";
import { barredFrom, notByHand, promisedAlready, stuckWith } from "./objections.ts";
import { type Ask, type Plan, planAddresses } from "./plan.ts";
import { rely } from "./reap.ts";
import { coolDropped, release } from "./release.ts";
import { isHeldBy } from "./reservation.ts";
import type { Stored } from "./store/store.ts";
import { confirm, giveBack, takeAll, withdraw } from "./take.ts";
import { lookUpClaim } from "./view.ts";

/** One identity's wish, complete: reserve needs nothing else to make its claim. */
export interface Intent {
  readonly key: ClaimKey;
  readonly identity: Identity;
  readonly interface?: string;
  readonly request: ClaimRequest;
  readonly retention: Retention;
  readonly ask: Ask;
  /** Promise the claim to this pod in the same write. */
  readonly promise?: Binding;
  /** Token of the promise that was found to be over, whose place this may take; absent: of none. */
  readonly instead?: string;
  /**
   * What the claim of the name says goes, as it is when it is written: whatever claim it is, for a pod that asks for
   * nothing itself, or one that a person made, for a pod that does not say what it wants.
   */
  readonly followsClaim?: "any" | "handMade";
  /** A person asks, for the claim that he has made: no other claim of the name will do. */
  readonly byHand?: true;
}

export interface Reserved {
  readonly kind: "reserved";
  readonly claim: Stored<"claim">;
  /** Made or changed by this call; otherwise it stood already. */
  readonly fresh: boolean;
  /** Made by this call: whoever has the claim since has another revision of it. */
  readonly made: boolean;
}

/** `again`: somebody changed the claim. `contended`: another process is at work on the same identity. */
type Attempt = Reserved | Refusal | { readonly kind: "again" } | { readonly kind: "contended" };

/**
 * Takes what the identity needs, all families or none, and answers with its claim; the claim that is there already
 * if it still fits. Two writes and a read for a new identity, none for one that has its claim.
 *
 * Reservations first, each created under the address's name, which is what makes two winners impossible; then the
 * claim; then the reservations are read back, because a reaper may have thought them orphans in between.
 * Throws REVISION_CONFLICT when records keep changing, and what the store throws.
 */
export async function reserve(context: Context, intent: Intent): Promise<Reserved | Refusal> {
  return await context.serial.run(claimKey(intent.key), () => reserveAlone(context, intent));
}

async function reserveAlone(context: Context, intent: Intent): Promise<Reserved | Refusal> {
  const key = claimKey(intent.key);
  let sure = !looksNew(context, intent);
  let known = sure ? await knownClaim(context, intent) : undefined;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const current = await finished(context, known);
    const attempt = await tryReserve(context, followed(intent, current?.record), current);
    if (attempt.kind === "reserved" || (attempt.kind === "refused" && sure)) return attempt;
    if (attempt.kind === "contended" && sure)
      await context.clock.sleep(100 + 100 * context.random.fraction());
    known = await context.store.get("claim", key);
    sure = true;
  }
  throw new BerthError("REVISION_CONFLICT", `claim ${key} kept changing while it was reserved`, {
    details: { claim: key },
  });
}

/**
 * A claim that the view lacks is not there, almost always, and creating it is the proof: no need to read it first. An
 * ordinal's claim is made in advance, by another replica perhaps a moment ago.
 */
function looksNew({ view }: Context, { key, identity, byHand, followsClaim }: Intent): boolean {
  if (byHand === true || followsClaim !== undefined || identity.ordinal !== undefined) return false;
  return view.claim(claimKey(key)) === undefined;
}

async function knownClaim(context: Context, { key, byHand }: Intent): Promise<Stored<"claim"> | undefined> {
  const name = claimKey(key);
  return byHand === true ? await context.store.get("claim", name) : await lookUpClaim(context, name);
}

/** Whoever began to give the claim back may have stopped half-way; what then cools is this identity's own to take. */
async function finished(
  context: Context,
  known: Stored<"claim"> | undefined,
): Promise<Stored<"claim"> | undefined> {
  if (known?.record.releasing !== true) return known;
  await release(context, known);
  return await context.store.get("claim", known.key);
}

async function tryReserve(
  context: Context,
  intent: Intent,
  known: Stored<"claim"> | undefined,
): Promise<Attempt> {
  const before = known?.record;
  if (before?.releasing === true) return { kind: "contended" };
  const barred = barredFor(before, intent);
  if (barred !== undefined) return barred;
  const listed = before?.addresses ?? [];
  const holds = await sureOf(context, listed, before?.nonce ?? "");
  const plan = planAddresses(context.view, { ...intent.ask, holds });
  if (isRefusal(plan)) return plan;
  const moves = plan.lots.length > 0 || plan.keep.length < listed.length;
  if (known !== undefined && !moves && isCurrent(known, intent, context.clock.now())) {
    return { kind: "reserved", claim: known, fresh: false, made: false };
  }
  const stuck = moves ? immovable(before, intent, holds) : undefined;
  if (stuck !== undefined) return stuck;
  const attempt = await take(context, intent, known, plan);
  if (attempt.kind !== "reserved") return attempt;
  const { addresses, nonce } = attempt.claim.record;
  for (const address of listed) if (!addresses.includes(address)) await coolDropped(context, address, nonce);
  return attempt;
}

/** Why the claim cannot have other addresses now. */
function immovable(claim: Claim | undefined, intent: Intent, holds: readonly Address[]): Refusal | undefined {
  return promisedAlready(claim, intent) ?? (holds.length > 0 ? stuckWith(claim, intent.ask) : undefined);
}

function barredFor(claim: Claim | undefined, { identity, byHand, key }: Intent): Refusal | undefined {
  return barredFrom(claim, identity) ?? (byHand === true ? notByHand(claim, key) : undefined);
}

/**
 * Which of its addresses a claim may rely on: those that the view shows reserved for it cost nothing, the others are
 * looked up. A reserver that was reaped while it paused may be about to take its claim back, or may have crashed.
 */
async function sureOf(context: Context, listed: readonly Address[], nonce: string): Promise<Address[]> {
  const sure: Address[] = [];
  for (const address of listed) {
    const shown = context.view.reservation(address)?.record;
    const stands = shown !== undefined && isHeldBy(shown, nonce);
    if (stands || (await rely(context.store, address, nonce))) sure.push(address);
  }
  return sure;
}

/** Reservations, then the claim, then the reservations once more; whatever breaks off is undone. */
async function take(
  context: Context,
  intent: Intent,
  known: Stored<"claim"> | undefined,
  plan: Plan,
): Promise<Attempt> {
  const before = known?.record;
  const nonce = before === undefined || before.nonce === "" ? context.random.token() : before.nonce;
  const took = await takeAll(context, plan.lots, intent.key, nonce);
  if (!Array.isArray(took)) return took;
  const addresses = [...plan.keep, ...took.map(({ stored }) => stored.record.address)];
  const next = claimOf(intent, before, { addresses, nonce, now: context.clock.now() });
  const written = await writeClaim(context, known, next).catch(async (error: unknown) => {
    if (known === undefined && isCorrupt(error)) await withdraw(context, took);
    throw error;
  });
  if (written !== undefined && (await confirm(context, took, nonce))) {
    return { kind: "reserved", claim: written, fresh: true, made: known === undefined };
  }
  if (written !== undefined) await undo(context, written, known);
  await giveBack(context, took);
  return { kind: "again" };
}

/** Nothing about the claim would be written again, and it does not wait for its pod for so long that its time is almost over. */
function isCurrent({ record: claim, createdAt }: Stored<"claim">, intent: Intent, now: number): boolean {
  if (!isReserved(claim)) return false;
  const waitsLong =
    claim.binding === undefined && now - Math.max(createdAt, claim.admittedAt ?? 0) > PROMISE_MS / 2;
  return (claim.handMade === true || !waitsLong) && agrees(claim, intent);
}

/** The claim is of this owner, with this retention and request, and is not set aside; what a person wrote stays as it is. */
export function agrees(claim: Claim, { identity, retention, request }: Intent): boolean {
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

function claimOf(
  intent: Intent,
  known: Claim | undefined,
  to: { addresses: readonly Address[]; nonce: string; now: number },
): Claim {
  const said = { identity: intent.identity, retention: intent.retention, request: intent.request };
  // A claim that somebody else made meanwhile may be lent already.
  const lent =
    intent.promise === undefined || known?.binding !== undefined ? {} : { binding: intent.promise };
  const where = intent.interface === undefined ? {} : { interface: intent.interface };
  const addresses = [...to.addresses].sort(compareAddresses);
  const got = { addresses, nonce: to.nonce, admittedAt: to.now };
  if (known === undefined)
    return { ...intent.key, ...said, ...where, ...lent, ...got, status: { phase: "Pending" } };
  const { retained: _, ...kept } = known;
  // What a person wrote into a claim stays theirs.
  return known.handMade === true ? { ...kept, ...got } : { ...kept, ...said, ...where, ...lent, ...got };
}

async function writeClaim(
  context: Context,
  known: Stored<"claim"> | undefined,
  next: Claim,
): Promise<Stored<"claim"> | undefined> {
  if (known === undefined) {
    const created = await context.store.create("claim", next);
    return created.kind === "created" ? created.stored : undefined;
  }
  const replaced = await context.store.replace("claim", known, next);
  return replaced.kind === "replaced" ? replaced.stored : undefined;
}

/** A claim of the name is there and cannot be read, which is why the view lacks it: nothing can be reserved for it. */
function isCorrupt(error: unknown): boolean {
  return error instanceof BerthError && error.code === "STATE_CORRUPT";
}

/** The claim as it was before; if somebody changed it meanwhile, the next round looks at what is there. */
async function undo(
  context: Context,
  written: Stored<"claim">,
  before: Stored<"claim"> | undefined,
): Promise<void> {
  if (before === undefined) await context.store.remove("claim", written);
  else await context.store.replace("claim", written, before.record);
}
