// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import { FOLLOWED, type RecordCache } from "../../allocator/cache/cache.ts";
import { type CacheSync, syncCache } from "../../allocator/cache/sync.ts";
import type { Store } from "../../allocator/store/store.ts";

/** A watch of records that failed for good is begun anew after this. */
const FOLLOW_AGAIN_MS = 5_000;

interface RecordDeps {
  readonly store: Store;
  readonly cache: RecordCache;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Keeps the cache up to date until `signal` aborts. A view that stands still would plan from the past for ever:
 * whatever ends a watch, it is begun anew. `synced` never resolves when the signal aborts before it.
 */
export function syncRecords(
  { store, cache, clock, log }: RecordDeps,
  signal: AbortSignal,
): Pick<CacheSync, "synced" | "ended"> {
  const synced = Promise.withResolvers<void>();
  const run = async () => {
    while (!signal.aborted) {
      const cut = new AbortController();
      const following = syncCache(store, cache, AbortSignal.any([signal, cut.signal]), [
        ...FOLLOWED,
        "block",
      ]);
      following.synced.then(
        () => cache.ready && synced.resolve(),
        () => {}, // `ended` says the same
      );
      try {
        await following.ended;
      } catch (error) {
        log.error("records are not followed any more; begins anew", { error: messageOf(error) });
      }
      cut.abort(); // the watches of the other kinds
      await clock.sleep(FOLLOW_AGAIN_MS, signal);
    }
  };
  return { synced: synced.promise, ended: run() };
}
