// SPDX-License-Identifier: Apache-2.0

import type { Refusal } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Reading } from "../../allocator/cache/read-ahead.ts";
import { readClaim } from "../../allocator/cache/reader.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { claimKey, isReserved } from "../../allocator/model/claim.ts";
import { addressTaken } from "../../allocator/planning/refusal-messages.ts";

type Known = Pick<Context, "view"> & { readonly store: Reading };

/**
 * Of a pod that cannot have its addresses now, and has them when it, or another one of the same workload, is made again: a warning. A refusal:
 * somebody else has one of them. Undefined: it is refused for something else. `own`: the claims of its workload.
 */
export async function laterWords(
  known: Known,
  allocation: AllocationRequest,
  would: Refusal,
  own: ReadonlySet<string>,
): Promise<string | Refusal | undefined> {
  const isSiblings = would.code === "ADDRESS_TAKEN" && own.has(would.details["holder"] ?? "");
  const waits = isSiblings && (await isReplaced(known, allocation));
  if (would.code !== "CLAIM_CHANGED" && !waits) return undefined;
  return (
    (await heldElsewhere(known, allocation, own)) ??
    (waits
      ? `${allocation.key.name} has other addresses once the pod of the same StatefulSet that has them has been created again`
      : would.message)
  );
}

/**
 * Whether its pod comes to its turn is judged with the list as a whole. One of a new ordinal is made before any other is deleted, and of a
 * shared list's slots none has a turn.
 */
async function isReplaced(known: Known, { key, identity }: AllocationRequest): Promise<boolean> {
  if (identity.ordinal === undefined) return false;
  const claim = (await readClaim(known, claimKey(key)))?.record;
  return claim !== undefined && isReserved(claim);
}

/** Why a claim in use cannot have its new addresses whenever its pod is made again: they are somebody else's. */
async function heldElsewhere(
  { view, store }: Known,
  allocation: AllocationRequest,
  own: ReadonlySet<string>,
): Promise<Refusal | undefined> {
  if (allocation.constraints.fallback !== undefined) return undefined;
  for (const address of allocation.constraints.addresses ?? []) {
    const found = view.reservation(address) ?? (await store.get("reservation", address));
    const pool = view.poolOf(address);
    if (found === undefined || found.record.releasedAt !== undefined || pool === undefined) continue;
    if (!own.has(claimKey(found.record.claim))) return addressTaken(view, pool, address, found.record);
  }
  return undefined;
}
