// SPDX-License-Identifier: Apache-2.0

import { Backoff } from "../../../allocator/base/backoff.ts";
import type { Clock, Random } from "../../../allocator/base/ports.ts";

interface Waiting {
  readonly state: string;
  /** Monotonic. */
  readonly since: number;
  readonly backoff: Backoff;
}

/** Half a minute at most: what wakes a waiter is a change, and this is for the one that got lost. */
const LOOK_AGAIN = { base: 500, longest: 30_000 };

/** For how long keys have been in the state that they are in, and when to look at them again. */
export class StateTimer {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #random: Pick<Random, "fraction">;
  readonly #waiting = new Map<string, Waiting>(); // key -> its state

  constructor(clock: Pick<Clock, "monotonic">, random: Pick<Random, "fraction">) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Milliseconds since the key was first seen in this state; in another one it begins anew. */
  ageOf(key: string, state: string): number {
    const now = this.#clock.monotonic();
    const known = this.#waiting.get(key);
    if (known?.state === state) return now - known.since;
    this.#waiting.set(key, { state, since: now, backoff: new Backoff(LOOK_AGAIN, this.#random) });
    return 0;
  }

  /** Milliseconds until the next look, longer each time while the state stays. */
  next(key: string): number {
    return this.#waiting.get(key)?.backoff.next() ?? LOOK_AGAIN.base;
  }

  forget(key: string): void {
    this.#waiting.delete(key);
  }
}
