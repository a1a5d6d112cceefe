// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../base/ports.ts";
import type { RecordCache } from "../cache/cache.ts";
import type { Stored } from "../store/store.ts";
import { isHeld } from "./node-cidr-plan.ts";

/** After this long what was written here and is not seen is no longer counted. */
export const SHOWN_MS = 60_000;

interface Deps {
  readonly view: Pick<RecordCache, "blocks" | "block">;
  readonly clock: Pick<Clock, "monotonic">;
}

/** Records of CIDRs of Nodes: those that the cache shows, and those that were granted here and it does not show yet. */
export class GrantedCidrs {
  readonly #context: Deps;
  readonly #granted = new Map<string, { readonly block: Stored<"block">; readonly until: number }>(); // by CIDR

  constructor(context: Deps) {
    this.#context = context;
  }

  /** What the cache shows; of what was granted here that, as long as it shows it not at all, or not granted. */
  all(): readonly Stored<"block">[] {
    const shown = [...this.#context.view.blocks()].filter(({ record }) => record.use === "PodCIDR");
    const own = [...this.#granted.values()].filter(({ block: { key } }) => !this.#shows(key));
    const keys = new Set(own.map(({ block }) => block.key));
    return [...shown.filter(({ key }) => !keys.has(key)), ...own.map(({ block }) => block)];
  }

  #shows(cidr: string): boolean {
    return this.#context.view.block(cidr)?.record.granted === true;
  }

  keep(block: Stored<"block">): void {
    if (!isHeld(block.record, "PodCIDR")) return;
    this.#granted.set(block.key, { block, until: this.#context.clock.monotonic() + SHOWN_MS });
  }

  forget(): void {
    const now = this.#context.clock.monotonic();
    for (const [cidr, { until }] of this.#granted)
      if (now >= until || this.#shows(cidr)) this.#granted.delete(cidr);
  }

  /** Of what was granted here, also what the cache shows by now. */
  own(): readonly Stored<"block">[] {
    return [...this.#granted.values()].map(({ block }) => block);
  }

  drop(cidr: string): void {
    this.#granted.delete(cidr);
  }
}
