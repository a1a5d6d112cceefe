// SPDX-License-Identifier: Apache-2.0
import { setImmediate as turn } from "node:timers/promises";

/** Lets everything happen that waits for nothing but its turn. */
export async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await turn();
}
