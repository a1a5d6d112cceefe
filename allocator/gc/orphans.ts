// SPDX-License-Identifier: Apache-2.0
// Which records look left behind: reservations without a claim, and claims that lack a reservation.

import type { Context } from "../cache/context.ts";
import { cooldownOf } from "../cache/cooldown.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { cooldownOrphan, deleteOrphan } from "../lifecycle/orphan-mark.ts";
import { ServerTimes } from "../lifecycle/server-times.ts";
import { claimKey, isReserved } from "../model/claim.ts";
import { isBackedByClaim, isHeldBy, type Reservation } from "../model/reservation.ts";
import type { Stored } from "../store/store.ts";

/** A reservation without its claim is an orphan when it looked the same this long ago. */
export const ORPHAN_GRACE_MS = 30_000;

/**
 * When a record was first seen without its counterpart, and as which revision: address or claim -> first seen. Undefined:
 * nobody has looked before.
 */
export type FirstSeen = ReadonlyMap<string, { readonly revision: string; readonly at: number }> | undefined;

/**
 * Since when a record looks as it does. Who looks for the first time goes by when it was made, which the store knows: leaders
 * that change sooner than the grace is over would begin it anew for ever. It is not when the record was changed last, so it
 * counts then alone; whoever has looked before saw the change.
 */
function unchangedSince(
  firstSeen: FirstSeen,
  { key, revision, createdAt }: Stored<"reservation" | "claim">,
  now: number,
) {
  if (firstSeen === undefined) return Math.max(Math.min(createdAt, now), now - ORPHAN_GRACE_MS);
  const seen = firstSeen.get(key);
  return seen?.revision === revision ? seen.at : now;
}

export interface OrphanPlan {
  /** Cooling is over: the address is free again. */
  readonly cooled: readonly Stored<"reservation">[];
  /** Seen without a claim twice, unchanged, with the grace in between. */
  readonly orphans: readonly Stored<"reservation">[];
  readonly firstSeen: NonNullable<FirstSeen>;
  /** Of these time alone may change what is decided. Of others a change of the reservation, or of the claim that lists it, is needed. */
  readonly unsettled: readonly Address[];
}

/** Decides which of the reservations, all of them if absent, to look at; the deletion itself reads the store again. */
export function findOrphans(
  view: RecordReader,
  firstSeen: FirstSeen,
  now: number,
  {
    reservations = view.reservations(),
    stamps = new ServerTimes(),
  }: { readonly reservations?: Iterable<Stored<"reservation">>; readonly stamps?: ServerTimes } = {},
): OrphanPlan {
  const cooled: Stored<"reservation">[] = [];
  const orphans: Stored<"reservation">[] = [];
  const unsettled: Address[] = [];
  const next = new Map<string, { revision: string; at: number }>();
  for (const stored of reservations) {
    const { record, revision } = stored;
    const claim = view.claim(claimKey(record.claim))?.record;
    const isBacked = record.releasedAt === undefined && isBackedByClaim(claim, record);
    // one that is being given back need not list what it gives back
    if (!isBacked || claim?.releasing === true) unsettled.push(record.address);
    if (record.releasedAt !== undefined) {
      const since = stamps.past(record.address, record.releasedAt, now);
      if (now >= since + cooldownOf(view, record)) cooled.push(stored);
      continue;
    }
    if (isBacked) continue;
    const at = unchangedSince(firstSeen, stored, now);
    next.set(record.address, { revision, at });
    if (now - at >= ORPHAN_GRACE_MS) orphans.push(stored);
  }
  return { cooled, orphans, firstSeen: next, unsettled };
}

/** What a claim waits to take over cools, so that it may have the address and nobody else; anything else is free. */
export async function freeOrphan(
  context: Context,
  stored: Stored<"reservation">,
): Promise<"removed" | "kept"> {
  if (!hasSuccessor(context.view, stored.record)) return await deleteOrphan(context, stored);
  const outcome = await cooldownOrphan(context, stored, context.clock.now());
  return outcome === "gone" ? "removed" : "kept";
}

function hasSuccessor(view: RecordReader, { claim, address }: Reservation): boolean {
  for (const { record } of view.claims("successors")) {
    const waits = record.handMade === true && record.nonce === "" && record.takesOver === claim.name;
    if (waits && record.namespace === claim.namespace && record.request.addresses?.includes(address) === true)
      return true;
  }
  return false;
}

interface RepairPlan {
  /** Seen twice, unchanged, with the grace in between, without all that they list. */
  readonly broken: readonly Stored<"claim">[];
  readonly firstSeen: NonNullable<FirstSeen>;
}

/** Decides which of the claims, all of them if absent, list an address that is not reserved for them. */
export function findBroken(
  view: RecordReader,
  firstSeen: FirstSeen,
  now: number,
  claims: Iterable<Stored<"claim">> = view.claims(),
): RepairPlan {
  const broken: Stored<"claim">[] = [];
  const next = new Map<string, { revision: string; at: number }>();
  for (const stored of claims) {
    const { key, revision, record } = stored;
    const lacks = (address: Address) => {
      const reservation = view.reservation(address)?.record;
      if (reservation === undefined || !isHeldBy(reservation, record.nonce)) return true;
      return view.blockOwning?.(address) !== undefined;
    };
    if (!isReserved(record) || !record.addresses.some(lacks)) continue;
    const at = unchangedSince(firstSeen, stored, now);
    next.set(key, { revision, at });
    if (now - at >= ORPHAN_GRACE_MS) broken.push(stored);
  }
  return { broken, firstSeen: next };
}
