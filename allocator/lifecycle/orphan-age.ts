// SPDX-License-Identifier: Apache-2.0
// From when on a reservation without its claim may be taken for an orphan by others (ADR 0044).

import type { Clock } from "../base/ports.ts";
import type { Context } from "../cache/context.ts";
import type { Stored } from "../store/store.ts";

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
