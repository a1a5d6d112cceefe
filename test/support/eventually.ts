// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";

/** When a test gives up: on a slow machine that has other things to do nothing takes as long. */
const GIVE_UP_MS = 60_000;
/** Between two looks, which cost whoever is looked at something, too. */
const SHORTEST_MS = 20;
const LONGEST_MS = 500;
/** Of the time that was waited, so much may be waited in vain. */
const SHARE = 0.1;

/** Looks again and again until the look finds something other than undefined; throws after `ms`, saying `what`. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  ms = GIVE_UP_MS,
): Promise<T> {
  const began = performance.now();
  for (;;) {
    const asked = performance.now();
    const found = await look();
    if (found !== undefined) return found;
    const now = performance.now();
    if (now - began > ms) throw new Error(`did not happen within ${ms} ms: ${what}`);
    await pause(pauseAfter(now - began, now - asked));
  }
}

/** Short at first; then twice as long as a look takes, or a share of what was waited: whoever looks takes a third of the time at most. */
function pauseAfter(waitedMs: number, lookMs: number): number {
  return Math.min(Math.max(SHORTEST_MS, lookMs * 2, waitedMs * SHARE), LONGEST_MS);
}
