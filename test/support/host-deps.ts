// SPDX-License-Identifier: Apache-2.0
import { type Clock, type Logger, noopLogger, type Random } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";

/** Clock and randomness of this host, and a log that nobody reads: for real parts in a test's own process. */
export function hostDeps(): { readonly clock: Clock; readonly random: Random; readonly log: Logger } {
  return { clock: createClock(), random: createRandom(), log: noopLogger };
}
