// SPDX-License-Identifier: Apache-2.0
import type { Random } from "./ports.ts";

interface BackoffOptions {
  /** Of the first wait, ms. */
  readonly base: number;
  readonly longest: number;
}

/** Exponential, with jitter: all who lost the same server must not come back at the same moment. */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: Pick<Random, "fraction">;
  #failures = 0;

  constructor(options: BackoffOptions, random: Pick<Random, "fraction">) {
    this.#options = options;
    this.#random = random;
  }

  /** How long to wait after one more failure, ms: between half and all of base * 2^n. */
  next(): number {
    const { base, longest } = this.#options;
    const whole = Math.min(longest, base * 2 ** Math.min(this.#failures, 30));
    this.#failures++;
    return whole * (0.5 + 0.5 * this.#random.fraction());
  }

  reset(): void {
    this.#failures = 0;
  }
}
