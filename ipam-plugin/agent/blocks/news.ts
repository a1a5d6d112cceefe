// SPDX-License-Identifier: Apache-2.0

/** ADDs that wait for something of the blocks to become known. */
export class News {
  readonly #waiting = new Set<() => void>();

  /** Resolves when something was heard, or when the signal aborts. */
  async heard(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.#waiting.add(wake);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    signal.removeEventListener("abort", wake);
    this.#waiting.delete(wake);
  }

  wake(): void {
    for (const wake of this.#waiting) wake();
  }
}
