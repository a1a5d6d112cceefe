// SPDX-License-Identifier: Apache-2.0

/**
 * Serialises work per key inside one process, so that racing requests for one identity do not undo each other's
 * attempts. It saves work and proves nothing: the store's create and compare-and-set are the guard.
 */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<unknown>>(); // key -> end of its queue
  readonly #next = new Map<string, Promise<unknown>>(); // key -> work for several that has not begun

  /** Work for the key is under way, or waits. */
  isBusy(key: string): boolean {
    return this.#tails.has(key);
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    const tail = mine.catch(() => undefined);
    this.#tails.set(key, tail);
    try {
      return await mine;
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }

  /** As `run`, once for all who ask before it begins: whoever asks gets what was begun afterwards. Under one key all ask for the same. */
  together<T>(key: string, work: () => Promise<T>): Promise<T> {
    const next = this.#next.get(key);
    if (next !== undefined) return next as Promise<T>;
    const mine = this.run(key, () => {
      this.#next.delete(key);
      return work();
    });
    this.#next.set(key, mine);
    return mine;
  }
}
