// SPDX-License-Identifier: Apache-2.0
import type { Labels } from "../../../allocator/base/ports.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Store, Stored } from "../../../allocator/store/store.ts";
import type { PodRef } from "../claims/claim-source.ts";

/** What decides which pools are open to a pod. A part that is not known is absent, which does not say that there is none. */
export interface PodFacts {
  readonly podLabels?: Labels;
  readonly podAnnotations?: Labels;
  readonly namespaceLabels?: Labels;
  readonly nodeLabels?: Labels;
}

/**
 * What the agent knows of the blocks that are its node's, from whoever keeps the records: the watch of the API server in a
 * cluster. It may lag; what it does not have is not proven to be gone before everything was listed.
 */
export interface BlockSource {
  /** Every block of this node, and every pool, was listed once since this process began. */
  readonly isSynced: boolean;
  /** Those whose record names this node, granted or not. */
  blocks(): Iterable<Stored<"block">>;
  pool(name: string): Pool | undefined;
  pools(): Iterable<Pool>;
  factsOf(pod: PodRef): PodFacts;
  /** Has more blocks made, and says whether there are; absent where somebody else sees what is needed. */
  readonly more?: () => Promise<boolean>;
  /** How this node's agent says something of its blocks; absent where nobody is to be told. */
  readonly statuses?: { readonly node: string; readonly store: Pick<Store, "get" | "reportBlock"> };
}

/** There are none. */
export const noBlocks: BlockSource = {
  isSynced: true,
  blocks: () => [],
  pool: () => undefined,
  pools: () => [],
  factsOf: () => ({}),
};
