// SPDX-License-Identifier: Apache-2.0
import { compareAddresses } from "../../allocator/address.ts";
import { claimKey } from "../../allocator/claim.ts";
import { isRefusal } from "../../allocator/errors.ts";
import { parsePool } from "../../allocator/pool.ts";
import type { Reservation } from "../../allocator/reservation.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { allOf } from "../ledger.ts";
import { listing } from "../listing.ts";
import { reservationManifest } from "../manifest.ts";
import { ageOf, timeOf } from "../output.ts";

interface Row {
  readonly stored: Stored<"reservation">;
  /** Of its pool, milliseconds. */
  readonly cooldownMs: number;
}

export const reservations = listing<Row>({
  names: ["reservations", "reservation", "ipreservations", "ipreservation", "ipr"],
  noun: "reservation of",
  scope: "host",
  async load({ store }) {
    const cooldowns = new Map<string, number>(); // pool -> milliseconds
    for (const { key, record } of await allOf(store, "pool")) {
      const pool = parsePool(record);
      if (!isRefusal(pool)) cooldowns.set(key, pool.cooldownMs);
    }
    const all = await allOf(store, "reservation");
    return all
      .sort((a, b) => compareAddresses(a.record.address, b.record.address))
      .map((stored) => ({ stored, cooldownMs: cooldowns.get(stored.record.pool) ?? 0 }));
  },
  keyOf: ({ stored }) => ({ namespace: stored.record.claim.namespace, name: stored.key }),
  manifest: ({ stored }) => reservationManifest(stored),
  columns: ({ now }) => [
    { title: "ADDRESS", cell: ({ stored }) => stored.key },
    { title: "POOL", cell: ({ stored }) => stored.record.pool },
    { title: "CLAIM", cell: ({ stored }) => claimKey(stored.record.claim) },
    { title: "STATE", cell: ({ stored, cooldownMs }) => standOf(stored.record, cooldownMs) },
    { title: "NONCE", wide: true, cell: ({ stored }) => stored.record.nonce },
    { title: "AGE", cell: ({ stored }) => ageOf(stored.createdAt, now) },
  ],
});

/** `held`, `cooling until ...`, or that the reaper is looking at it. */
export function standOf(
  { releasedAt, marked }: Pick<Reservation, "releasedAt" | "marked">,
  cooldownMs: number,
): string {
  if (releasedAt !== undefined) return `cooling until ${timeOf(releasedAt + cooldownMs)}`;
  return marked === true ? "marked" : "held";
}
