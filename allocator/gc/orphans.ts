// SPDX-License-Identifier: Apache-2.0
// Which records lack their counterpart: reservations without a claim, and claims without a reservation that they list.

import type { Context } from "../cache/context.ts";
import { cooldownOf } from "../cache/cooldown.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { cooldownOrphan, deleteOrphan } from "../lifecycle/orphan-mark.ts";
import { ServerTimes } from "../lifecycle/server-times.ts";
import { claimKey, isReserved } from "../model/claim.ts";
import { isBackedByClaim, isHeldBy, type Reservation } from "../model/reservation.ts";
import type { Stored } from "../store/store.ts";

/** A reservation without its claim is an orphan once it has been so, unchanged, for this long. */
export const ORPHAN_GRACE_MS = 30_000;

/**
 * By address or by key of a claim: when the record was first seen without its counterpart, and at which revision. Undefined: this
 * process looks for the first time.
 */
export type FirstSeen = ReadonlyMap<string, { readonly revision: string; readonly at: number }> | undefined;

/**
 * Since when a record is as it is. A process that looks for the first time takes the time at which the store created the record:
 * otherwise leaders that change within the grace would begin it anew each time. That is not the time of its last change, so it
 * is used on the first look alone; later looks see each change.
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
  /** Without a claim, and unchanged, for the whole grace. */
  readonly orphans: readonly Stored<"reservation">[];
  readonly firstSeen: NonNullable<FirstSeen>;
  /** Those about which time alone may change the decision. The others need not be looked at until they or their claims change. */
  readonly unsettled: readonly Address[];
}

/** Decides by the view, about `reservations` or about all; who deletes one reads the store again. */
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
    // a claim that is being released may go before its reservation cools
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

/** Deletes the reservation. If a claim waits to take its address over it is set to cooling instead, so that nobody else gets the address. */
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
  /** Without a reservation that they list, and unchanged, for the whole grace. */
  readonly broken: readonly Stored<"claim">[];
  readonly firstSeen: NonNullable<FirstSeen>;
}

/** Which of the claims, or of all, list an address that is not reserved for them. */
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
