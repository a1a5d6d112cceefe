// SPDX-License-Identifier: Apache-2.0
import type { Context } from "../../allocator/cache/context.ts";
import { cooldownOf } from "../../allocator/cache/cooldown.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";

/** So long Berth is waited for, which hears of a claim's end in a moment: the time is of more use than that it has not seen it yet. */
export const SEEN_MS = 2_000;
const LOOK_MS = 200;

/**
 * When others may have the address of a claim that was released (wall clock, ms); undefined: Berth has yet to see to it, at `until` (monotonic, ms) too, or this
 * user may not read reservations or pools.
 */
export async function freeFrom(
  { store, view, clock }: Pick<Context, "store" | "view" | "clock">,
  address: Address,
  until: number,
): Promise<number | undefined> {
  const records = new AllowedRecords(store);
  for (;;) {
    const reservation = (await records.get("reservation", address))?.record;
    if (reservation === undefined) return records.hides("reservation") ? undefined : clock.now();
    const { releasedAt } = reservation;
    // without the pools nobody knows for how long it cools
    if (releasedAt !== undefined)
      return view.pools().length === 0 ? undefined : releasedAt + cooldownOf(view, reservation);
    if (clock.monotonic() >= until) return undefined;
    await clock.sleep(LOOK_MS);
  }
}
