// SPDX-License-Identifier: Apache-2.0
import { type ChangedEvents, type PoolNote, poolEvents } from "./changed-events.ts";
import type { ControllerDeps } from "./controller.ts";

/** Whatever refuses them: a policy, or a record that cannot be read. */
const REFUSED = { type: "Warning", reason: "BlocksRefused", action: "Granting" } as const;

/** Tells, by an event and in the metrics, of pools whose blocks or CIDRs cannot be given, as of the last pass of one controller. */
export class RefusedPools {
  readonly #what: string;
  readonly #events: ChangedEvents<PoolNote>;
  #faults: ReadonlyMap<string, string> = new Map();

  /** `what`: blocks, or CIDRs. */
  constructor(deps: Pick<ControllerDeps, "cache" | "events" | "metrics">, what: "blocks" | "CIDRs") {
    this.#what = what;
    this.#events = poolEvents(deps, REFUSED);
    deps.metrics.gauge?.("berth_blocks_refused_pools", () =>
      [...this.#faults.keys()].map((pool) => ({ labels: { pool }, value: 1 })),
    );
  }

  /** Why, by the name of the pool. */
  publish(faults: ReadonlyMap<string, string>): void {
    this.#faults = new Map(faults);
    const notes = [...faults].map(
      ([pool, why]) =>
        [pool, { pool, note: `${this.#what} of the pool cannot be given to nodes: ${why}` }] as const,
    );
    this.#events.publish(new Map(notes));
  }

  forget(): void {
    this.#faults = new Map();
    this.#events.forget();
  }
}
