// SPDX-License-Identifier: Apache-2.0

/**
 * Keys that are due once nothing has happened to them for `quietMs`. Those of old come when no other is due, so that
 * a long list of them delays nothing that happens now. All times are monotonic milliseconds.
 */
export class DebounceQueue {
  readonly #quietMs: number;
  readonly #fresh = new Map<string, number>(); // key -> when it is due, the soonest first
  readonly #old = new Map<string, number>(); // key -> when it is due, the soonest first

  constructor(quietMs: number) {
    this.#quietMs = quietMs;
  }

  get size(): number {
    return this.#fresh.size + this.#old.size;
  }

  /** Something happened to the key: it waits anew. */
  enter(key: string, now: number): void {
    this.leave(key);
    this.#fresh.set(key, now + this.#quietMs);
  }

  /** As it was found, nobody knows since when; one that waits already stays as it is. */
  enterOld(key: string, now: number): void {
    if (!this.#fresh.has(key) && !this.#old.has(key)) this.#old.set(key, now + this.#quietMs);
  }

  leave(key: string): void {
    this.#fresh.delete(key);
    this.#old.delete(key);
  }

  clear(): void {
    this.#fresh.clear();
    this.#old.clear();
  }

  /** Takes out the key whose turn it is. */
  take(now: number): string | undefined {
    for (const keys of [this.#fresh, this.#old]) {
      const [first] = keys;
      if (first === undefined || first[1] > now) continue;
      keys.delete(first[0]);
      return first[0];
    }
    return undefined;
  }

  /** When the next one is due; infinite without any. */
  dueAt(): number {
    const firsts = [this.#fresh, this.#old].map((keys) => keys.values().next().value);
    return Math.min(...firsts.map((due) => due ?? Number.POSITIVE_INFINITY));
  }
}
