// SPDX-License-Identifier: Apache-2.0
import { ManualClock } from "../../system/testing/manual-clock.ts";

export { ManualClock } from "../../system/testing/manual-clock.ts";

/** A manual clock on which sleeping costs no real time: whoever sleeps moves it on. */
export class HastyClock extends ManualClock {
  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return;
    this.advance(ms);
  }
}
