// SPDX-License-Identifier: Apache-2.0
import type { Reservation } from "../model/reservation.ts";
import { DEFAULT_COOLDOWN_MS } from "../pool/pool.ts";
import type { RecordReader } from "./reader.ts";

/**
 * How long, in ms, the address cools down after it was given back to this pool. If the pool is not known (it is gone, or was just made),
 * what it said then decides, or else the pool that now contains the address, and without one the default applies.
 */
export function cooldownOf(
  view: Pick<RecordReader, "pool" | "poolOf">,
  { address, pool, cooldownMs }: Pick<Reservation, "address" | "pool" | "cooldownMs">,
): number {
  const known = view.pool(pool)?.cooldownMs ?? cooldownMs;
  return known ?? view.poolOf(address)?.cooldownMs ?? DEFAULT_COOLDOWN_MS;
}
