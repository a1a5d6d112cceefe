// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";

/** When a test gives up: on a machine that has other things to do nothing takes as long. */
const GIVE_UP_MS = 60_000;
/** On a machine that may be slow and busy, so many times as long: .ci/run says so. */
const PATIENCE = Number(process.env["BERTH_PATIENCE"] ?? 1);
/** Between two looks, which cost whoever is looked at something, too. */
const SHORTEST_MS = 20;
const LONGEST_MS = 500;
/** Of the time that was waited, so much may be waited in vain. */
const SHARE = 0.1;

/** How long something may take that takes `ms` at most where nothing else happens. */
export function patient(ms: number): number {
  return ms * PATIENCE;
}

/** Looks again and again until the look finds something other than undefined; throws after `ms`, or as many times that as BERTH_PATIENCE says, saying `what`. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  ms = GIVE_UP_MS,
): Promise<T> {
  const limit = patient(ms);
  const began = performance.now();
  for (;;) {
    const asked = performance.now();
    const found = await look();
    if (found !== undefined) return found;
    const now = performance.now();
    if (now - began > limit) throw new Error(`did not happen within ${limit} ms: ${what}`);
    await pause(pauseAfter(now - began, now - asked));
  }
}

/** Short at first; then twice as long as a look takes, or a share of what was waited: whoever looks takes a third of the time at most. */
function pauseAfter(waitedMs: number, lookMs: number): number {
  return Math.min(Math.max(SHORTEST_MS, lookMs * 2, waitedMs * SHARE), LONGEST_MS);
}
