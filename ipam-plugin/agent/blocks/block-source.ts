// SPDX-License-Identifier: Apache-2.0
import type { Labels } from "../../../allocator/base/ports.ts";
import type { Family } from "../../../allocator/ip/address.ts";
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
/** The Node object of this node. */
export interface OwnNode {
  readonly uid: string;
  /** Milliseconds since this process first saw an object of this UID. */
  readonly seenForMs: number;
  /** Somebody vouches that nothing runs on it. */
  readonly fenced: boolean;
}

/** What the nodes have of a pool: those that have most, first. */
export interface PoolOwner {
  readonly node: string;
  readonly family: Family;
  readonly blocks: number;
}

export interface BlockSource {
  /** Every block of this node, and every pool, was listed once since this process began. */
  readonly isSynced: boolean;
  /** Those whose record names this node, granted or not. */
  blocks(): Iterable<Stored<"block">>;
  pool(name: string): Pool | undefined;
  pools(): Iterable<Pool>;
  factsOf(pod: PodRef): PodFacts;
  /** The labels of a namespace decide, and are not known; absent where nothing is to be done for them to be. */
  wantNamespaces?(): void;
  /** Has more blocks of one of these pools made, and says whether there are; absent where somebody else sees what is needed. */
  readonly more?: (pools: readonly string[]) => Promise<boolean>;
  /** So far as it is known; absent where nodes are none of its matter. */
  ownNode?(): OwnNode | undefined;
  /** Who has blocks of the pool, as its status says; absent where one node has all. */
  ownersOf?(pool: string): readonly PoolOwner[];
  /**
   * Whether a refusal names nodes and blocks. The kubelet writes the words of an ADD into an event, for whoever reads events of the pod's
   * namespace; absent: it counts them.
   */
  readonly refusalsNameAll?: boolean;
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
