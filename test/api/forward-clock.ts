// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";

/** This host's time, which can be set forward. */
export class ForwardClock implements Clock {
  readonly #real = createClock();
  #ahead = 0;

  now(): number {
    return this.#real.now() + this.#ahead;
  }

  monotonic(): number {
    return this.#real.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#real.sleep(ms, signal);
  }

  forward(ms: number): void {
    this.#ahead += ms;
  }
}
