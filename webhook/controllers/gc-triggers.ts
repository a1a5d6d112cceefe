// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../allocator/base/ports.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { NODE_GRACE_MS } from "../../allocator/model/cluster-state.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";
import type { Informers } from "../cluster-state/informers.ts";

interface GcTriggerDeps {
  readonly cache: RecordCache;
  readonly watches: Pick<Informers, "pods" | "nodes">;
  readonly clock: Clock;
  readonly enqueueForGc: (claim: Claim) => void;
}

/** A node whose grace is over, and a little more: whoever judges its claims must find it over. */
const AFTER_GRACE_MS = NODE_GRACE_MS + 500;

/**
 * Points out claims that may have lost what they were kept for, so that nobody waits for the next pass: their pod is
 * gone or has ended, their node is fenced, somebody deleted them. What workloads no longer need is for their controller to say.
 */
export function startGcTriggers({ cache, watches, clock, enqueueForGc }: GcTriggerDeps): Controller {
  const stop = new AbortController();
  const waits = new Set<Promise<void>>();
  const enqueueAll = (claims: readonly Stored<"claim">[]) => {
    for (const { record } of claims) enqueueForGc(record);
  };
  const afterGrace = async (node: string) => {
    await clock.sleep(AFTER_GRACE_MS, stop.signal);
    if (!stop.signal.aborted && watches.nodes.get(node) === undefined) enqueueAll(cache.claimsOnNode(node));
  };
  const forget = [
    watches.pods.onChange((_, now, before) => {
      const isSame = now?.uid === before?.uid && now?.ended === before?.ended;
      if (before === undefined || isSame) return;
      enqueueAll(cache.claimsOfPod(before.namespace, before.name));
    }),
    cache.onChange("claim", (_, now) => {
      if (now?.record.deleting === true) enqueueForGc(now.record);
    }),
    watches.nodes.onChange((node, now, before) => {
      if (now?.fenced === true && before?.fenced !== true) enqueueAll(cache.claimsOnNode(node));
      if (now !== undefined || before === undefined) return;
      const wait = afterGrace(node).finally(() => waits.delete(wait));
      waits.add(wait);
    }),
  ];
  return {
    async close() {
      for (const one of forget) one();
      stop.abort();
      await Promise.all(waits);
    },
  };
}
