// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../ip/address.ts";
import { DEFAULT_COOLDOWN_MS } from "../pool/pool.ts";
import type { RecordReader } from "./reader.ts";

/**
 * How long, in ms, the address is nobody's after it was given back as one of this pool. A pool that is not known may be gone, or just made, and
 * another one may have the address: then what that one says counts, and where there is none the default.
 */
export function cooldownOf(
  view: Pick<RecordReader, "pool" | "poolOf">,
  { address, pool }: { readonly address: Address; readonly pool: string },
): number {
  return (view.pool(pool) ?? view.poolOf(address))?.cooldownMs ?? DEFAULT_COOLDOWN_MS;
}
