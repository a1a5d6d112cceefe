// SPDX-License-Identifier: Apache-2.0

import type { Block } from "../../../allocator/model/block.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { BlockSource, OwnNode, PodFacts, PoolOwner } from "../blocks/block-source.ts";

/** Blocks as the watch has them: as far behind as a test wants. */
export class PlainBlocks implements BlockSource {
  isSynced = true;
  readonly records = new Map<string, Stored<"block">>(); // CIDR -> block
  readonly stored = new Map<string, Pool>(); // name -> pool

  blocks(): Iterable<Stored<"block">> {
    return this.records.values();
  }

  facts: PodFacts = {};
  /** This node's Node object, where that matters. */
  own: OwnNode | undefined = { uid: "u", seenForMs: 0, fenced: false };
  owners: readonly PoolOwner[] = [];
  /** Somebody has asked for labels of namespaces. */
  areNamespacesWanted = false;
  refusalsNameAll = false;
  /** Set: blocks are proven by what is written there before they are given from. */
  statuses?: NonNullable<BlockSource["statuses"]>;

  ownNode(): OwnNode | undefined {
    return this.own;
  }

  ownersOf(): readonly PoolOwner[] {
    return this.owners;
  }

  pool(name: string): Pool | undefined {
    return this.stored.get(name);
  }

  pools(): Iterable<Pool> {
    return this.stored.values();
  }

  factsOf(): PodFacts {
    return this.facts;
  }

  wantNamespaces(): void {
    this.areNamespacesWanted = true;
  }

  /** This node has the block, granted unless it is said otherwise. */
  grant(pool: string, cidr: string, over: Partial<Block> = {}, uid = `uid of ${cidr}`): void {
    const record = { cidr, pool, node: "node-a", nodeUID: "u", holes: [], granted: true, ...over };
    this.records.set(cidr, { key: cidr, record, uid, revision: "1", createdAt: 0 });
  }
}
