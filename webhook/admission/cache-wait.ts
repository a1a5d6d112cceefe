// SPDX-License-Identifier: Apache-2.0
import type { RefusalCode } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Store } from "../../allocator/store/store.ts";
import { codeOf, type Handler } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";

/** What a view says that has not heard yet of a pool which was made, or opened, a moment before the pod. */
const STALE_CACHE_CODES: ReadonlySet<string> = new Set<RefusalCode>([
  "POOL_UNKNOWN",
  "POOL_DISABLED",
  "POOL_FORBIDDEN",
  "NODE_MISMATCH",
  "ADDRESS_OUTSIDE",
  "ADDRESS_EXCLUDED",
  "FAMILY_UNAVAILABLE",
]);

/** Decides again when the view knew less than the store, and does not any more. A refusal has written nothing. */
export function retryWhenFresh({ catchUp }: AdmissionContext, handler: Handler): Handler {
  if (catchUp === undefined) return handler;
  return async (request, signal) => {
    const response = await handler(request, signal);
    const again = STALE_CACHE_CODES.has(codeOf(response)) && (await catchUp());
    return again ? await handler(request, signal) : response;
  };
}

/** A watch is behind by milliseconds; who waits longer waits for a watch that is broken. */
const MAX_WAIT_MS = 1_000;
const POLL_MS = 20;

/** Waits until the cache has all pools that are stored now. True if that changed anything. */
export async function waitForPools(
  { store, clock }: { readonly store: Pick<Store, "list">; readonly clock: Clock },
  cache: Pick<RecordCache, "poolRecord">,
): Promise<boolean> {
  const unheard: { readonly key: string; readonly known: string | undefined }[] = [];
  for await (const stored of store.list("pool")) {
    const known = cache.poolRecord(stored.key)?.revision;
    if (known !== stored.revision) unheard.push({ key: stored.key, known });
  }
  if (unheard.length === 0) return false;
  const until = clock.monotonic() + MAX_WAIT_MS;
  const heard = () => unheard.every(({ key, known }) => cache.poolRecord(key)?.revision !== known);
  while (!heard() && clock.monotonic() < until) await clock.sleep(POLL_MS);
  return heard();
}
