// SPDX-License-Identifier: Apache-2.0
import { setImmediate } from "node:timers/promises";

/** Lets everything happen that waits for nothing but its turn. */
export async function eventLoopTurns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await setImmediate();
}
