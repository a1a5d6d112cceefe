// SPDX-License-Identifier: Apache-2.0
import type { Random } from "../../allocator/base/ports.ts";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** Randomness that a seed decides (mulberry32), so that a run can be replayed. */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed = 1) {
    this.#state = seed >>> 0;
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  token(): string {
    return Array.from({ length: 26 }, () => ALPHABET[this.below(32)]).join("");
  }

  /** 0 <= n < limit. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.below(choices.length)];
    if (choice === undefined) throw new RangeError("nothing to pick from");
    return choice;
  }
}
