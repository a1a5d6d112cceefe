// SPDX-License-Identifier: Apache-2.0
// Reservations that no claim relies on: from when on others than their reservers may take them for orphans (ADR 0044), and how.

import type { Clock } from "../base/ports.ts";
import type { Context } from "../cache/context.ts";
import { claimKey } from "../model/claim.ts";
import { isBackedByClaim, type Reservation } from "../model/reservation.ts";
import { DEFAULT_COOLDOWN_MS } from "../pool/pool.ts";
import { retryOnConflict } from "../store/retry-on-conflict.ts";
import type { Store, Stored } from "../store/store.ts";

/** After this long a reservation without its claim was left by a crash, not by a reserver at work. */
const BROKEN_OFF_MS = 1_500;
/** The same, where whoever was quick relies on it, by a clock that may be 5 s ahead of the one that stamped it (`AnchoredClock`). */
const CERTAINLY_MS = 8_000;

/**
 * Whether others than its reserver may mark it. Where nobody relies on that it is a guess that saves work. Where somebody does
 * (`wereLeftAlone` in acquire.ts) it is old beyond doubt, or was met at this revision for so long.
 */
export function isBrokenOff(
  { clock, store: { stampsSeconds }, metFor }: Pick<Context, "clock" | "store" | "metFor">,
  found: Stored<"reservation">,
): boolean {
  const age = clock.now() - found.createdAt;
  if (stampsSeconds !== true) return age >= BROKEN_OFF_MS;
  return age >= CERTAINLY_MS || (metFor?.(found) ?? 0) >= BROKEN_OFF_MS;
}

/** Remembers since when one attempt has met a reservation as it is, by the monotonic clock; milliseconds. */
export function meetings(clock: Pick<Clock, "monotonic">): NonNullable<Context["metFor"]> {
  const met = new Map<string, { readonly revision: string; readonly at: number }>(); // address -> when it was met
  return ({ key, revision }) => {
    const now = clock.monotonic();
    const before = met.get(key);
    const at = before?.revision === revision ? before.at : now;
    met.set(key, { revision, at });
    return now - at;
  };
}

/** `relied`: a claim relies on it. `changed`: lost a compare-and-set; the other writer settles it. */
type OrphanOutcome = "gone" | "relied" | "changed";

/**
 * Lets a reservation go that no claim relies on, and only then; `end` does it, by a change of exactly what it is given.
 *
 * A slow reserver may be about to write the claim, so looking first and deleting then is not enough: the reservation
 * is marked, the claim is read again, and exactly the marked revision is deleted. Whoever relies on a reservation
 * that he finds marked takes the mark away first. Both sides write before they read, so at least one sees the other.
 */
async function deleteIfOrphan(
  store: Store,
  seen: Stored<"reservation">,
  end: (marked: Stored<"reservation">) => Promise<"gone" | "changed">,
): Promise<OrphanOutcome> {
  if (await reliedOn(store, seen.record)) return "relied";
  const marked = seen.record.marked === true ? seen : await setMark(store, seen, true);
  if (marked === undefined) return "changed";
  if (await reliedOn(store, marked.record)) {
    await setMark(store, marked, false);
    return "relied";
  }
  return await end(marked);
}

/** Deletes a reservation that no claim relies on. */
export async function deleteOrphan(
  { store }: Pick<Context, "store">,
  seen: Stored<"reservation">,
): Promise<"removed" | "kept"> {
  const outcome = await deleteIfOrphan(store, seen, async (marked) =>
    (await store.remove("reservation", marked)).kind === "removed" ? "gone" : "changed",
  );
  return outcome === "gone" ? "removed" : "kept";
}

/** Sets a reservation that no claim relies on to cooling, since `releasedAt`. */
export async function cooldownOrphan(
  context: Pick<Context, "store" | "view">,
  seen: Stored<"reservation">,
  releasedAt: number,
): Promise<OrphanOutcome> {
  return await deleteIfOrphan(context.store, seen, (marked) => cooldown(context, marked, releasedAt));
}

/** The same for one that nobody can rely on any more: its claim is releasing, or was never created. */
export async function cooldown(
  { store, view }: Pick<Context, "store" | "view">,
  seen: Stored<"reservation">,
  releasedAt: number,
): Promise<"gone" | "changed"> {
  const { marked: _, cooldownMs: before, ...rest } = seen.record;
  const cooldownMs = view.pool(rest.pool)?.cooldownMs ?? before ?? DEFAULT_COOLDOWN_MS;
  const said = cooldownMs === DEFAULT_COOLDOWN_MS ? {} : { cooldownMs };
  const result = await store.replace("reservation", seen, { ...rest, releasedAt, ...said });
  return result.kind === "replaced" ? "gone" : "changed";
}

/** Makes a reservation that no claim relies on another claim's, in one write: nobody else can have the address in between. */
export async function handOverOrphan(
  { store }: Pick<Context, "store">,
  seen: Stored<"reservation">,
  next: Reservation,
): Promise<{ readonly kind: "taken over"; readonly stored: Stored<"reservation"> } | "relied" | "changed"> {
  let taken: Stored<"reservation"> | undefined;
  const outcome = await deleteIfOrphan(store, seen, async (marked) => {
    const result = await store.replace("reservation", marked, next);
    if (result.kind === "conflict") return "changed";
    taken = result.stored;
    return "gone";
  });
  if (outcome !== "gone") return outcome;
  return taken === undefined ? "changed" : { kind: "taken over", stored: taken };
}

async function reliedOn(store: Store, reservation: Reservation): Promise<boolean> {
  const claim = await store.get("claim", claimKey(reservation.claim));
  return isBackedByClaim(claim?.record, reservation);
}

async function setMark(
  store: Store,
  seen: Stored<"reservation">,
  marked: boolean,
): Promise<Stored<"reservation"> | undefined> {
  const { marked: _, ...bare } = seen.record;
  const result = await store.replace("reservation", seen, marked ? { ...bare, marked } : bare);
  return result.kind === "replaced" ? result.stored : undefined;
}

/**
 * Makes sure that a claim may rely on its reservation: there, of its nonce, not cooling, and without a mark.
 * Reads the store; removes a mark by compare-and-set. False: it may not.
 */
export async function ensureUnmarked(store: Store, address: string, nonce: string): Promise<boolean> {
  const change = { kind: "reservation", key: address, doing: "its mark was taken away" } as const;
  return await retryOnConflict(store, change, async (seen) => {
    if (seen === undefined || seen.record.nonce !== nonce || seen.record.releasedAt !== undefined)
      return false;
    if (seen.record.marked !== true) return true;
    return (await setMark(store, seen, false)) === undefined ? "conflict" : true;
  });
}
