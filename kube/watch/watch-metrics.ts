// SPDX-License-Identifier: Apache-2.0
import type { Clock, Metrics, Sample } from "../../allocator/base/ports.ts";
import { kindName, type Resource } from "../api/resource.ts";

/** What a watch tells of itself. */
export interface WatchReporter {
  /** The API server said something: an event, a bookmark, a page of a list. */
  heard(): void;
  /** A full pass begins. */
  relists(): void;
  /** A full pass is done. */
  synced(): void;
  /** The watch ended too soon. `code`: of the fault. */
  interrupted(code: string): void;
}

interface Kept {
  /** Monotonic. */
  heardAt: number;
  synced: boolean;
}

/** How the watches of one process are: a resource is watched once. */
export class WatchMetrics {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #metrics: Metrics;
  readonly #kinds = new Map<string, Kept>(); // kind -> how its watch is

  constructor(clock: Pick<Clock, "monotonic">, metrics: Metrics) {
    this.#clock = clock;
    this.#metrics = metrics;
    metrics.gauge?.("berth_watch_synced", () => this.#samples(({ synced }) => (synced ? 1 : 0)));
    metrics.gauge?.("berth_watch_silence_seconds", () =>
      this.#samples(({ heardAt }) => (this.#clock.monotonic() - heardAt) / 1000),
    );
  }

  /** For the watch of a resource; one that is begun anew goes on where the one before was. */
  of(resource: Resource): WatchReporter {
    const kind = kindName(resource);
    const kept = this.#kinds.get(kind) ?? { heardAt: this.#clock.monotonic(), synced: false };
    this.#kinds.set(kind, kept);
    return {
      heard: () => {
        kept.heardAt = this.#clock.monotonic();
      },
      relists: () => this.#metrics.increment("berth_watch_relists_total", { kind }),
      synced: () => {
        kept.synced = true;
      },
      interrupted: (code) => this.#metrics.increment("berth_watch_interruptions_total", { kind, code }),
    };
  }

  #samples(value: (kept: Kept) => number): Sample[] {
    return [...this.#kinds].map(([kind, kept]) => ({ labels: { kind }, value: value(kept) }));
  }
}
