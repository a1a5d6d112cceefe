// SPDX-License-Identifier: Apache-2.0
import type { Clock, Metrics, Sample } from "../../allocator/base/ports.ts";

interface MeterOptions {
  /** Of the queue. */
  readonly name: string;
  readonly clock: Pick<Clock, "monotonic">;
  readonly metrics: Metrics;
  /** How many keys wait for a moment that has not come. */
  readonly later: () => number;
}

/** Counts and times what a work queue does. A key that is added while it is worked on is due from then on. */
export class QueueMetrics {
  readonly #options: MeterOptions;
  readonly #due = new Map<string, number>(); // key -> monotonic time since which it waits
  readonly #working = new Map<string, number>(); // key -> monotonic time since which it is worked on

  constructor(options: MeterOptions) {
    this.#options = options;
    const { name: queue, metrics } = options;
    metrics.gauge?.("berth_queue_keys", () => this.#keys());
    metrics.gauge?.("berth_queue_oldest_seconds", () => [{ labels: { queue }, value: this.#oldest() }]);
  }

  /** The key is to be looked at as soon as possible. */
  due(key: string): void {
    if (!this.#due.has(key)) this.#due.set(key, this.#options.clock.monotonic());
  }

  begun(key: string): void {
    const { name: queue, clock, metrics } = this.#options;
    const now = clock.monotonic();
    metrics.observe("berth_queue_wait_seconds", (now - (this.#due.get(key) ?? now)) / 1000, { queue });
    this.#due.delete(key);
    this.#working.set(key, now);
  }

  ended(key: string, outcome: string): void {
    const { name: queue, clock, metrics } = this.#options;
    const now = clock.monotonic();
    metrics.observe("berth_queue_work_seconds", (now - (this.#working.get(key) ?? now)) / 1000, { queue });
    metrics.increment("berth_queue_outcomes_total", { queue, outcome });
    this.#working.delete(key);
  }

  #keys(): Sample[] {
    const { name: queue, later } = this.#options;
    const keys = { waiting: this.#due.size, working: this.#working.size, later: later() };
    return Object.entries(keys).map(([state, value]) => ({ labels: { queue, state }, value }));
  }

  #oldest(): number {
    const now = this.#options.clock.monotonic();
    let oldest = now;
    for (const since of this.#due.values()) oldest = Math.min(oldest, since);
    for (const since of this.#working.values()) oldest = Math.min(oldest, since);
    return (now - oldest) / 1000;
  }
}
