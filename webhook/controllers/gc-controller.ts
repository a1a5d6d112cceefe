// SPDX-License-Identifier: Apache-2.0

import type { Metrics } from "../../allocator/base/ports.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { type GcLoop, startGcLoop } from "../../allocator/gc/gc-loop.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { apiVersionOf, CLAIMS } from "../../kube/api/resource.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import type { LeaderTerm } from "../../kube/controller/leader-election.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";

import { type LeaderElection, untilAborted } from "./leadership.ts";

interface GcControllerDeps {
  readonly context: Context;
  readonly inventory: { readonly cached: ClusterState; readonly live: ClusterState };
  readonly leadership: Pick<LeaderElection, "onGain">;
  readonly metrics: Metrics;
  readonly events: { record(notice: EventInput): void };
  /** Resolves when the view and the cached inventory are whole: before, every claim would look forsaken. */
  readonly synced: Promise<void>;
}

export interface GcController extends Controller {
  /** The claim may have lost what it was kept for. Nothing to a replica that does not lead: a new leader looks at everything. */
  enqueue(claim: Claim): void;
}

/** Runs the garbage collector for as long as this replica leads. */
export function startGcController(deps: GcControllerDeps): GcController {
  const stop = new AbortController();
  let loop: GcLoop | undefined;
  let terms: Promise<void> = Promise.resolve();
  const { clock } = deps.context;
  let collector: GarbageCollector | undefined;
  deps.metrics.gauge?.("berth_reaper_oldest_suspicion_seconds", () => {
    if (collector === undefined) return [];
    const { oldestCandidateSince = clock.now() } = collector;
    return [{ labels: {}, value: Math.max(0, clock.now() - oldestCandidateSince) / 1000 }];
  });
  const serve = async (term: LeaderTerm) => {
    const over = AbortSignal.any([stop.signal, term.signal]);
    await Promise.race([deps.synced, untilAborted(over)]);
    if (over.aborted) return;
    collector = collectorOf(deps, () => !over.aborted && term.holds());
    loop = startGcLoop(deps.context, collector, deps.metrics);
    await untilAborted(over);
    const ended = loop;
    loop = undefined;
    collector = undefined;
    await ended.close();
  };
  const forget = deps.leadership.onGain((term) => {
    terms = terms.then(() => serve(term));
  });
  return {
    enqueue: (claim) => loop?.enqueue(claim),
    async close() {
      forget();
      stop.abort();
      await terms;
    },
  };
}

function collectorOf(
  { context, inventory, events }: GcControllerDeps,
  mayWrite: () => boolean,
): GarbageCollector {
  const notRetained = ({ uid, record: { namespace, name } }: Stored<"claim">, because: string) =>
    events.record({
      regarding: { apiVersion: apiVersionOf(CLAIMS), kind: CLAIMS.kind, namespace, name, uid },
      ...{ type: "Warning", reason: "NotRetained", action: "Releasing" },
      note: `the claim is released although it asks to be retained: ${because}`,
    });
  return new GarbageCollector(context, inventory.live, {
    cachedState: inventory.cached,
    mayWrite,
    notRetained,
  });
}
