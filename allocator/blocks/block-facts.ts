// SPDX-License-Identifier: Apache-2.0
import type { Family } from "../ip/address.ts";
import type { Pool } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import type { NodeNeed } from "./block-plan.ts";
import type { BlockEvidence } from "./give-back.ts";

/** What the distributor goes by besides the records. */
export interface BlockFacts {
  /** The nodes that may have blocks of the pool now, and what their pods need of it. May be behind. */
  nodesFor(pool: Pool, family: Family): readonly NodeNeed[];
  /** What proves that the block may be taken from its node, besides its agent's word: never a cache's word alone. */
  evidence(block: Stored<"block">): Promise<BlockEvidence | undefined>;
  /** Whether the pool's nodeSelector has the node; undefined: there is no such node, or it counts as fenced. Absent: nobody knows. */
  selects?(pool: Pool, node: string): boolean | undefined;
  /** Agents say of each block that they have it, before they give from it. */
  readonly areProven?: boolean;
}
