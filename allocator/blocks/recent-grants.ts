// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../base/ports.ts";
import type { Stored } from "../store/store.ts";

/** After this long what was written here and is not in the cache is no longer counted: it has gone again. */
export const SHOWN_MS = 60_000;

/** Blocks that were granted here, until the cache shows them: else what they have would be granted once more. */
export class RecentGrants {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #isShown: (cidr: string) => boolean;
  readonly #granted = new Map<string, { readonly block: Stored<"block">; readonly until: number }>(); // by CIDR

  /** `isShown`: by the cache. */
  constructor(clock: Pick<Clock, "monotonic">, isShown: (cidr: string) => boolean) {
    this.#clock = clock;
    this.#isShown = isShown;
  }

  /** It was granted just now. */
  keep(block: Stored<"block">): void {
    this.#granted.set(block.key, { block, until: this.#clock.monotonic() + SHOWN_MS });
  }

  drop(cidr: string): void {
    this.#granted.delete(cidr);
  }

  forgetShown(): void {
    const now = this.#clock.monotonic();
    for (const [cidr, { until }] of this.#granted)
      if (now >= until || this.#isShown(cidr)) this.#granted.delete(cidr);
  }

  /** Also those that the cache shows by now. */
  own(): readonly Stored<"block">[] {
    return [...this.#granted.values()].map(({ block }) => block);
  }

  unshown(): readonly Stored<"block">[] {
    return this.own().filter(({ key }) => !this.#isShown(key));
  }

  /** What the cache shows, and of what was granted here that which it does not. */
  beside(shown: Iterable<Stored<"block">>): readonly Stored<"block">[] {
    const unshown = this.unshown();
    const keys = new Set(unshown.map(({ key }) => key));
    return [...[...shown].filter(({ key }) => !keys.has(key)), ...unshown];
  }
}
