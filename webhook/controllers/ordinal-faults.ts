// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../allocator/base/ports.ts";

/** By then a fault that passes by itself has not. */
const LASTS_MS = 60_000;

interface Faults {
  /** Monotonic: when the first of those walks was over that met what passes by itself, one after the other. */
  readonly passingSince: number | undefined;
  readonly next: number | undefined;
}

/** What the last walks over the ordinals of a workload met. */
export class OrdinalFaults {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #met = new Map<string, Faults>(); // workload -> what its walks met

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** A walk is over. `next`: it was cut short before that ordinal. True: what passes by itself has not, for long. */
  met(key: string, passing: boolean, next: number | undefined): boolean {
    const now = this.#clock.monotonic();
    const passingSince = passing ? (this.#met.get(key)?.passingSince ?? now) : undefined;
    if (passing || next !== undefined) this.#met.set(key, { passingSince, next });
    else this.over(key);
    return passingSince !== undefined && now - passingSince >= LASTS_MS;
  }

  /** Where the next walk begins; undefined: with the first ordinal. What cut the last one short may be of its ordinals alone. */
  next(key: string): number | undefined {
    return this.#met.get(key)?.next;
  }

  /** Nothing is to be had for it, or all is. */
  over(key: string): void {
    this.#met.delete(key);
  }
}
