// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "../../allocator/claim.ts";
import type { Context } from "../../allocator/context.ts";
import { type Housekeeping, keepHouse } from "../../allocator/housekeeping.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import type { Metrics } from "../../allocator/ports.ts";
import { Reaper } from "../../allocator/reaper.ts";
import type { Term } from "../../kube/lease.ts";
import type { Controller } from "./controller.ts";
import { endOf, type TermLeadership } from "./leadership.ts";

export interface HousekeeperDeps {
  readonly context: Context;
  readonly inventory: { readonly cached: Inventory; readonly live: Inventory };
  readonly leadership: Pick<TermLeadership, "onGain">;
  readonly metrics: Metrics;
  /** Resolves when the view and the cached inventory are whole: before, every claim would look forsaken. */
  readonly synced: Promise<void>;
}

export interface Housekeeper extends Controller {
  /** The claim may have lost what it was kept for. Nothing to a replica that does not lead: a new leader looks at everything. */
  suspect(claim: Claim): void;
}

/** Runs the reaper for as long as this replica leads. */
export function startHousekeeper(deps: HousekeeperDeps): Housekeeper {
  const stop = new AbortController();
  let house: Housekeeping | undefined;
  let terms: Promise<void> = Promise.resolve();
  const { clock } = deps.context;
  let reaper: Reaper | undefined;
  deps.metrics.gauge?.("berth_reaper_oldest_suspicion_seconds", () => {
    if (reaper === undefined) return [];
    const { oldestSuspicion = clock.now() } = reaper;
    return [{ labels: {}, value: Math.max(0, clock.now() - oldestSuspicion) / 1000 }];
  });
  const serve = async (term: Term) => {
    const over = AbortSignal.any([stop.signal, term.signal]);
    await Promise.race([deps.synced, endOf(over)]);
    if (over.aborted) return;
    reaper = reaperOf(deps, () => !over.aborted && term.holds());
    house = keepHouse(deps.context, reaper, deps.metrics);
    await endOf(over);
    const ended = house;
    house = undefined;
    reaper = undefined;
    await ended.close();
  };
  const forget = deps.leadership.onGain((term) => {
    terms = terms.then(() => serve(term));
  });
  return {
    suspect: (claim) => house?.suspect(claim),
    async close() {
      forget();
      stop.abort();
      await terms;
    },
  };
}

function reaperOf({ context, inventory }: HousekeeperDeps, mayWrite: () => boolean): Reaper {
  return new Reaper(context, inventory.live, { hints: inventory.cached, mayWrite });
}
