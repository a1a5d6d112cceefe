// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { type AllocationRequest, reserve } from "../../allocator/lifecycle/reserve.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";

/**
 * On the embedded stack: a claim of an ordinal's name that was made for another owner, as for a pod without one, becomes
 * the ordinal's with the addresses that it has, as a controller would make it in a cluster. What cannot is told: that
 * ordinal has no address of its own yet.
 */
export async function takeOver(
  context: Context,
  allocations: readonly AllocationRequest[],
): Promise<string[]> {
  const told: string[] = [];
  for (const allocation of allocations) {
    const there = (await context.store.get("claim", claimKey(allocation.key)))?.record;
    if (there === undefined || there.handMade === true || isOf(there, allocation)) continue;
    const got = await reserve(context, allocation, "workload");
    if (isRefusal(got)) told.push(got.message);
  }
  return told;
}

function isOf({ identity: its }: Claim, { identity }: AllocationRequest): boolean {
  return its.kind === identity.kind && its.name === identity.name && its.ordinal === identity.ordinal;
}
