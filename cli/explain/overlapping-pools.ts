// SPDX-License-Identifier: Apache-2.0
import type { Finding } from "../../allocator/gc/finding.ts";
import { defect } from "../../allocator/gc/finding.ts";
import { findOverlap } from "../../allocator/pool/overlap.ts";
import type { Pool } from "../../allocator/pool/pool.ts";

/** Two replicas that review two pools at the same moment may let both pass. One finding for each pair. */
export function overlappingPools(pools: readonly Pool[]): Finding[] {
  return pools.flatMap((pool, n) =>
    pools.slice(0, n).flatMap((other) => {
      const refusal = findOverlap([other], pool);
      if (refusal === undefined) return [];
      const words = `${refusal.message}, or set spec.disabled: true on one and delete it once nothing of it is in use`;
      return [defect("pool-overlap", pool.name, words)];
    }),
  );
}
