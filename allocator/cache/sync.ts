// SPDX-License-Identifier: Apache-2.0
import type { Kind, Store } from "../store/store.ts";
import { FOLLOWED, type RecordCache } from "./cache.ts";

/**
 * A running follow: `pools` once they were listed whole, `synced` once everything was, `ended` when the signal ended it
 * or a watch failed.
 */
export interface CacheSync {
  readonly pools: Promise<void>;
  readonly synced: Promise<void>;
  readonly ended: Promise<void>;
}

/** Keeps the cache up to date in these kinds until `signal` aborts. Its promises reject with what a watch throws (STATE_CORRUPT). */
export function syncCache(
  store: Store,
  cache: RecordCache,
  signal: AbortSignal,
  kinds: readonly Kind[] = FOLLOWED,
): CacheSync {
  const waits = kinds.map(() => Promise.withResolvers<void>());
  const watches = kinds.map((kind, i) =>
    applyWatch(store, cache, { kind, signal, synced: () => waits[i]?.resolve() }),
  );
  const ended = Promise.all(watches).then(() => undefined);
  const pools = Promise.race([waits[0]?.promise, ended]);
  const synced = Promise.race([Promise.all(waits.map((w) => w.promise)).then(() => undefined), ended]);
  for (const wait of [pools, synced]) wait.catch(() => {}); // not everybody waits for both, and `ended` says the same
  return { pools, synced, ended };
}

async function applyWatch(
  store: Store,
  cache: RecordCache,
  to: { kind: Kind; signal: AbortSignal; synced: () => void },
): Promise<void> {
  for await (const change of store.watch(to.kind, to.signal)) {
    cache.apply(to.kind, change);
    if (change.type === "synced") to.synced();
  }
}
