// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../base/ports.ts";
import type { Address } from "../ip/address.ts";

/** Of a pool's free addresses each replica goes to one half first, while others are at work on the same pool. */
export type Half = "even" | "odd";

interface Try {
  /** Its key. */
  readonly claim: string;
  /** Monotonic. */
  readonly at: number;
}

/** Until the records in memory show what came of it. */
const SHOWN_MS = 2_000;

/**
 * What keeps allocators that are at work at the same time from trying the same address: the store lets one of them have it,
 * and the others have asked for nothing. It saves calls and proves nothing.
 */
export class Spread {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #half: () => Half;
  readonly #tried = new Map<Address, Try>(); // the oldest first

  constructor(clock: Pick<Clock, "monotonic">, half: () => Half) {
    this.#clock = clock;
    this.#half = half;
  }

  /** The claim asks the store for it. */
  tries(address: Address, claim: string): void {
    this.#tried.delete(address);
    this.#tried.set(address, { claim, at: this.#clock.monotonic() });
  }

  /** Another claim of this process asked for it a moment ago. */
  wasTriedBeside(address: Address, claim: string): boolean {
    this.#forget();
    const tried = this.#tried.get(address);
    return tried !== undefined && tried.claim !== claim;
  }

  /** The half to go to first; undefined when nobody else of this process was at work a moment ago. */
  half(): Half | undefined {
    this.#forget();
    return this.#tried.size === 0 ? undefined : this.#half();
  }

  #forget(): void {
    const before = this.#clock.monotonic() - SHOWN_MS;
    for (const [address, { at }] of this.#tried) {
      if (at > before) return;
      this.#tried.delete(address);
    }
  }
}
