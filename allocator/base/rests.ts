// SPDX-License-Identifier: Apache-2.0
import { Backoff } from "./backoff.ts";
import type { Clock } from "./ports.ts";

/** The first is less than from one pass to the next: one fault alone may have been any. */
const REST = {
  base: 5_000,
  /** With the pass that comes after it, as long as what is due may take (invariant 6). */
  longest: 50_000,
};
/** One process has them, and nobody else to keep out of the way of. */
const EXACTLY = { fraction: () => 1 };

interface Rest {
  readonly backoff: Backoff;
  /** Monotonic, ms. */
  readonly until: number;
}

/** What met a fault is left alone for a while, twice as long each time: else each pass would try it, and it would be refused each time. */
export class Rests {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #rests = new Map<string, Rest>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  isResting(key: string): boolean {
    return this.#clock.monotonic() < (this.#rests.get(key)?.until ?? 0);
  }

  /** It met a fault. */
  begin(key: string): void {
    const backoff = this.#rests.get(key)?.backoff ?? new Backoff(REST, EXACTLY);
    this.#rests.set(key, { backoff, until: this.#clock.monotonic() + backoff.next() });
  }

  /** Nothing was wrong with it. */
  end(key: string): void {
    this.#rests.delete(key);
  }

  /** Forgets what nobody came back to. */
  forgetOld(): void {
    const before = this.#clock.monotonic() - 2 * REST.longest;
    for (const [key, { until }] of this.#rests) if (until < before) this.#rests.delete(key);
  }
}
