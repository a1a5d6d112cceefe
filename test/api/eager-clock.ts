// SPDX-License-Identifier: Apache-2.0
import { ForwardClock } from "./forward-clock.ts";

/** Passes of the garbage collector come every half second. */
export class EagerClock extends ForwardClock {
  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return super.sleep(ms === 10_000 ? 500 : ms, signal);
  }
}
