// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import { compareAddresses } from "../../allocator/ip/address.ts";
import { sayMacs } from "../../allocator/ip/mac.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import { parseStoredPool } from "../../allocator/pool/pool.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { reservationManifest } from "../apply/manifest.ts";
import { allOf } from "../backend/embedded-backend.ts";
import { ageOf, timeOf } from "../terminal/output.ts";
import { listing } from "./listing.ts";

/** A record, and for how long what is given back of its pool cools. */
export interface Cooled<K extends "block" | "reservation"> {
  readonly stored: Stored<K>;
  /** Milliseconds. */
  readonly cooldownMs: number;
}

export const reservations = listing<Cooled<"reservation">>({
  names: ["reservations", "reservation", "ipreservations", "ipreservation", "ipr"],
  noun: "reservation of",
  scope: "host",
  async load({ store }) {
    const all = await allWithCooldown(store, "reservation");
    return all.sort((a, b) => compareAddresses(a.stored.record.address, b.stored.record.address));
  },
  keyOf: ({ stored }) => ({ namespace: stored.record.claim.namespace, name: stored.key }),
  manifest: ({ stored }) => reservationManifest(stored),
  columns: ({ now }) => [
    { title: "ADDRESS", cell: ({ stored }) => sayMacs(stored.key) },
    { title: "POOL", cell: ({ stored }) => stored.record.pool },
    { title: "CLAIM", cell: ({ stored }) => claimKey(stored.record.claim) },
    { title: "STATE", cell: ({ stored, cooldownMs }) => reservationState(stored.record, cooldownMs) },
    { title: "NONCE", wide: true, cell: ({ stored }) => stored.record.nonce },
    { title: "AGE", cell: ({ stored }) => ageOf(stored.createdAt, now) },
  ],
});

export async function allWithCooldown<K extends "block" | "reservation">(
  store: Store,
  kind: K,
): Promise<Cooled<K>[]> {
  const cooldowns = new Map<string, number>(); // pool -> milliseconds
  for (const { key, record } of await allOf(store, "pool")) {
    const pool = parseStoredPool(record);
    if (!isRefusal(pool)) cooldowns.set(key, pool.cooldownMs);
  }
  const all = await allOf(store, kind);
  return all.map((stored) => ({ stored, cooldownMs: cooldowns.get(stored.record.pool) ?? 0 }));
}

/** `held`, `cooling until ...`, or that the garbage collector is looking at it. */
export function reservationState(
  { releasedAt, marked }: Pick<Reservation, "releasedAt" | "marked">,
  cooldownMs: number,
): string {
  if (releasedAt !== undefined) return `cooling until ${timeOf(releasedAt + cooldownMs)}`;
  return marked === true ? "marked" : "held";
}
