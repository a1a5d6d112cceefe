// SPDX-License-Identifier: Apache-2.0
import type { Clock, Metrics, Sample } from "../../../allocator/base/ports.ts";

/** How long pods wait for their claims, and what they wait for. */
export class BindingMetrics {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #metrics: Metrics;
  readonly #seen = new Map<string, { readonly uid: string; readonly since: number }>(); // pod key -> since when it is scheduled here
  readonly #blocked = new Map<string, string>(); // pod key -> code of what is in its way

  constructor(clock: Pick<Clock, "monotonic">, metrics: Metrics) {
    this.#clock = clock;
    this.#metrics = metrics;
    metrics.gauge?.("berth_pods_waiting", () => this.#waiting());
  }

  /** The pod has a node and is looked at. */
  scheduled(key: string, uid: string): void {
    if (this.#seen.get(key)?.uid !== uid) this.#seen.set(key, { uid, since: this.#clock.monotonic() });
  }

  blocked(key: string, code: string): void {
    this.#blocked.set(key, code);
  }

  bound(key: string, uid: string): void {
    const seen = this.#seen.get(key);
    if (seen?.uid !== uid) return;
    this.#metrics.observe("berth_binding_delay_seconds", (this.#clock.monotonic() - seen.since) / 1000);
  }

  /** It waits for nothing any more. */
  forget(key: string): void {
    this.#seen.delete(key);
    this.#blocked.delete(key);
  }

  #waiting(): Sample[] {
    const counts = new Map<string, number>(); // code -> pods
    for (const code of this.#blocked.values()) counts.set(code, (counts.get(code) ?? 0) + 1);
    return [...counts].map(([code, value]) => ({ labels: { code }, value }));
  }
}
