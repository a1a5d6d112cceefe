// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../ip/address.ts";
import { DEFAULT_COOLDOWN_MS } from "../pool/pool.ts";
import type { RecordReader } from "./reader.ts";

/**
 * How long, in ms, the address cools down after it was given back to this pool. If the pool is not known (it is gone, or was just made),
 * the pool that now contains the address decides, and without one the default applies.
 */
export function cooldownOf(
  view: Pick<RecordReader, "pool" | "poolOf">,
  { address, pool }: { readonly address: Address; readonly pool: string },
): number {
  return (view.pool(pool) ?? view.poolOf(address))?.cooldownMs ?? DEFAULT_COOLDOWN_MS;
}
