// SPDX-License-Identifier: Apache-2.0

interface Entry {
  readonly startNs: bigint;
  readonly abort: AbortController;
}

/** The ADDs under way, so that a DEL of the same place need not wait for their time limits. */
export class InFlight {
  readonly #entries = new Map<string, Set<Entry>>(); // id of the place -> ADDs that wait or run

  /** Runs `work` with a signal that a DEL of the place aborts. */
  async run<T>(id: string, startNs: bigint, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const entry = { startNs, abort: new AbortController() };
    const entries = this.#entries.get(id) ?? new Set();
    this.#entries.set(id, entries.add(entry));
    try {
      return await work(entry.abort.signal);
    } finally {
      entries.delete(entry);
      if (entries.size === 0 && this.#entries.get(id) === entries) this.#entries.delete(id);
    }
  }

  /** Ends the ADDs of the place that began before. */
  abortBefore(id: string, startNs: bigint): void {
    for (const entry of this.#entries.get(id) ?? []) {
      if (entry.startNs < startNs) entry.abort.abort();
    }
  }
}
