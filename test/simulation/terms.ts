// SPDX-License-Identifier: Apache-2.0
// Terms by the one true time: what is held is kept for its time, what cools is free when that is over.
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import { type Claim, isBound } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Written } from "../model/memory-records.ts";
import { isOfWorkload, isUsed } from "./wants.ts";

/** The words for a claim that is released while it waits for a pod that was admitted; `now` as the records' times. */
export function releasedTooSoon(
  { key, record, createdAt }: Stored<"claim">,
  now: number,
): string | undefined {
  const since = heldSince(record, createdAt);
  if (since === undefined || now - since >= HOLD_TIMEOUT_MS) return undefined;
  return `claim ${key} was released ${(now - since) / 1_000} s after it was held`;
}

function heldSince(claim: Claim, createdAt: number): number | undefined {
  const { binding, admittedAt = 0 } = claim;
  if (binding?.node === "") return binding.since;
  if (binding === undefined && !isOfWorkload(claim) && !isUsed(claim)) return Math.max(createdAt, admittedAt);
  return isBound(claim) && admittedAt > (binding?.since ?? 0) ? admittedAt : undefined;
}

/** The words for an address that somebody else may have before it has cooled. */
export function freedTooSoon(
  { kind, before, after }: Written,
  pools: readonly Pool[],
  now: number,
): string | undefined {
  if (kind !== "reservation" || before === undefined || after !== undefined) return undefined;
  const { address, pool, releasedAt } = before.record as Reservation;
  const cooldownMs = pools.find(({ name }) => name === pool)?.cooldownMs ?? 0;
  if (releasedAt === undefined || now - releasedAt >= cooldownMs) return undefined;
  return `address ${address} was free ${(now - releasedAt) / 1_000} s after it was given back, and cools for ${cooldownMs / 1_000} s`;
}
