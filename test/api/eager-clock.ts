// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";

/** The time of this host, which can be set forward; passes of the garbage collector come every half second. */
export class EagerClock implements Clock {
  readonly #real = createClock();
  #ahead = 0;

  now(): number {
    return this.#real.now() + this.#ahead;
  }

  monotonic(): number {
    return this.#real.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#real.sleep(ms === 10_000 ? 500 : ms, signal);
  }

  forward(ms: number): void {
    this.#ahead += ms;
  }
}
