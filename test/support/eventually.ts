// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";

/** When a test gives up: on a slow machine that has other things to do nothing takes as long. */
const GIVE_UP_MS = 60_000;

/** Looks again and again until the look finds something other than undefined; throws after `ms`, saying `what`. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  ms = GIVE_UP_MS,
): Promise<T> {
  const until = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > until) throw new Error(`did not happen within ${ms} ms: ${what}`);
    await pause(20);
  }
}
