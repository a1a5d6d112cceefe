// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../allocator/base/ports.ts";

interface Sleeper {
  readonly until: number;
  wake(): void;
}

/** A clock that stands still until it is told to move. For tests. */
export class ManualClock implements Clock {
  #elapsed = 0;
  readonly #start: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#start = startMs;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  /** How many sleep at this moment: what a test waits for before it moves the clock. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = {
        until: this.#elapsed + ms,
        wake: () => {
          this.#sleepers.delete(sleeper);
          signal?.removeEventListener("abort", sleeper.wake);
          resolve();
        },
      };
      signal?.addEventListener("abort", sleeper.wake, { once: true });
      this.#sleepers.add(sleeper);
    });
  }

  /** Moves the clock and wakes who is due, the earliest first. */
  advance(ms: number): void {
    this.#elapsed += ms;
    const due = [...this.#sleepers].filter((sleeper) => sleeper.until <= this.#elapsed);
    for (const sleeper of due.toSorted((a, b) => a.until - b.until)) sleeper.wake();
  }
}
