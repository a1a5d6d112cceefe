// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "./ports.ts";

/** Less than from one pass to the next: one fault alone may have been any. */
const FIRST_REST_MS = 5_000;
/** With the pass that comes after it, as long as what is due may take (invariant 6). */
const LONGEST_REST_MS = 50_000;

interface Rest {
  readonly ms: number;
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
    const ms = Math.min(LONGEST_REST_MS, 2 * (this.#rests.get(key)?.ms ?? FIRST_REST_MS / 2));
    this.#rests.set(key, { ms, until: this.#clock.monotonic() + ms });
  }

  /** Nothing was wrong with it. */
  end(key: string): void {
    this.#rests.delete(key);
  }

  /** Forgets what nobody came back to. */
  forgetOld(): void {
    const before = this.#clock.monotonic() - 2 * LONGEST_REST_MS;
    for (const [key, { until }] of this.#rests) if (until < before) this.#rests.delete(key);
  }
}
