// SPDX-License-Identifier: Apache-2.0
import type { Context } from "../../allocator/cache/context.ts";
import { cooldownOf } from "../../allocator/cache/cooldown.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { shownAs } from "../../allocator/model/interface-macs.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { timeOf } from "../terminal/output.ts";

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

/** The same in words; `at`: when others may have it. */
export function freeWords(address: Address, at: number | undefined, now: number): string {
  const shown = shownAs(address);
  if (at === undefined) return `${shown} is free for others when Berth has seen it, within 120 s`;
  const seconds = Math.max(0, Math.ceil((at - now) / 1000));
  return `${shown} is free for others in ${seconds} s, at ${timeOf(at)}`;
}
