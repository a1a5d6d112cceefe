// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { dryRun } from "../../allocator/demand/allocation-dry-run.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import type { Store } from "../../allocator/store/store.ts";
import type { Backend } from "../backend/backend.ts";
import { loadCache } from "../backend/embedded-backend.ts";

export interface WhereReserved {
  readonly store: Store;
  readonly place: Backend["place"];
  readonly clock: Clock;
}

/**
 * Why each can have nothing now, by the decision of whoever reserves it; those that nothing is against are not in it. Reads all
 * records, unless nothing is asked.
 */
export async function refusalNow(
  allocations: readonly AllocationRequest[],
  { store, place, clock }: WhereReserved,
): Promise<ReadonlyMap<AllocationRequest, Refusal>> {
  const refusals = new Map<AllocationRequest, Refusal>();
  if (allocations.length === 0) return refusals;
  const view = await loadCache(store);
  // in a cluster the webhook asks the API server which pools a service account may use, and who looks may not
  const usable = place === "cluster" ? { usable: new Set(view.pools().map(({ name }) => name)) } : {};
  for (const allocation of allocations) {
    const constraints = { ...allocation.constraints, ...usable };
    const would = await dryRun({ store, view, clock }, { ...allocation, constraints });
    if (isRefusal(would)) refusals.set(allocation, would);
  }
  return refusals;
}
