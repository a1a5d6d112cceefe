// SPDX-License-Identifier: Apache-2.0
// From when on a reservation without its claim may be taken for an orphan by others (ADR 0044).

import type { Context } from "../cache/context.ts";
import type { Stored } from "../store/store.ts";

/**
 * After this long a reservation without its claim was left by a crash, not by a reserver at work. Nobody but its reserver marks a
 * younger one. More than a second: see `wereLeftAlone` in acquire.ts.
 */
const BROKEN_OFF_MS = 1_500;

export function isBrokenOff(
  { clock }: Pick<Context, "clock">,
  { createdAt }: Stored<"reservation">,
): boolean {
  return clock.now() - createdAt >= BROKEN_OFF_MS;
}
