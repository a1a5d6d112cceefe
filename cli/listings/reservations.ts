// SPDX-License-Identifier: Apache-2.0

import { cooldownOf } from "../../allocator/cache/cooldown.ts";
import { type Address, compareAddresses } from "../../allocator/ip/address.ts";
import { sayMacs } from "../../allocator/ip/mac.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { Records, Store, Stored } from "../../allocator/store/store.ts";
import { reservationManifest } from "../apply/manifest.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { partialCache } from "../backend/backend.ts";
import { allOf } from "../backend/embedded-backend.ts";
import { ageOf, timeOf } from "../terminal/output.ts";
import { listing } from "./listing.ts";

/** A record, and for how long what is given back of its pool cools. */
export interface Cooled<K extends "block" | "reservation"> {
  readonly stored: Stored<K>;
  /** Milliseconds; undefined: this user may not read pools. */
  readonly cooldownMs: number | undefined;
}

export const reservations = listing<Cooled<"reservation">>({
  names: ["reservations", "reservation", "ipreservations", "ipreservation", "ipr"],
  noun: "reservation of",
  scope: "host",
  async load({ store }) {
    const all = await allWithCooldown(store, "reservation", ({ address }) => address);
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

/** As long as Berth lets each cool, also where its pool is gone. `addressOf`: one that the record is of. */
export async function allWithCooldown<K extends "block" | "reservation">(
  store: Store,
  kind: K,
  addressOf: (record: Records[K]) => Address,
): Promise<Cooled<K>[]> {
  const records = new AllowedRecords(store, [kind]);
  const view = await partialCache(records, []);
  const isHidden = records.hides("pool");
  const all = await allOf(store, kind);
  return all.map((stored) => {
    const of: Pick<Reservation, "pool" | "cooldownMs"> = stored.record; // a block does not say how long
    const address = addressOf(stored.record);
    return { stored, cooldownMs: isHidden ? undefined : cooldownOf(view, { ...of, address }) };
  });
}

/** `held`, `cooling until ...`, or that the garbage collector is looking at it. */
export function reservationState(
  { releasedAt, marked }: Pick<Reservation, "releasedAt" | "marked">,
  cooldownMs: number | undefined,
): string {
  if (releasedAt !== undefined) return coolingWords(releasedAt, cooldownMs);
  return marked === true ? "marked" : "held";
}

/** Without the pools nobody knows until when. */
export function coolingWords(releasedAt: number, cooldownMs: number | undefined): string {
  return cooldownMs === undefined ? "cooling" : `cooling until ${timeOf(releasedAt + cooldownMs)}`;
}
