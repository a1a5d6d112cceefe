// SPDX-License-Identifier: Apache-2.0
// Why a pod that asks for no address waits for one.

import { ownedIn } from "../../allocator/cache/block-index.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import { countPoolUsage, exhaustedOf, UNUSED } from "../../allocator/cache/pool-usage.ts";
import type { Family } from "../../allocator/ip/address.ts";
import { sizeOf } from "../../allocator/ip/ip-range.ts";
import { blockLength } from "../../allocator/pool/blocks.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { PoolChoice } from "../../allocator/pool/pool-choice.ts";
import type { Store } from "../../allocator/store/store.ts";
import { loadCache } from "../backend/embedded-backend.ts";

/** In words, what is in use where none of the pools has an address for a pod of the node; undefined: one has. Reads all records. */
export async function usedUpFor(
  store: Store,
  { pools, families }: PoolChoice,
  node: string,
): Promise<string | undefined> {
  const view = await loadCache(store);
  const lacking = families.find((family) =>
    pools.every((pool) => blockLength(pool, family) === undefined || isUsedUp(view, pool, { family, node })),
  );
  if (lacking === undefined) return undefined;
  const usage = await countPoolUsage(view, async () => undefined);
  const each = pools.map(({ name }) => {
    const { inBlocks = 0, reserved, cooling } = (usage.get(name) ?? UNUSED).byFamily[lacking];
    return `pool "${name}" has no free ${lacking} address: ${inBlocks} in blocks of nodes, ${reserved} in claims, ${cooling} cooling`;
  });
  return each.join("; ");
}

/** By what agents said last of their blocks. */
function isUsedUp(
  view: RecordCache,
  pool: Pool,
  { family, node }: { readonly family: Family; readonly node: string },
): boolean {
  if (!exhaustedOf(view, pool).includes(family)) return false;
  return [...view.blocksOf(pool.name)].every(({ record }) => {
    const owned = ownedIn(record);
    if (record.node !== node || owned.family !== family || record.releasedAt !== undefined) return true;
    const all = owned.intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);
    return BigInt(record.status?.used ?? 0) >= all;
  });
}
