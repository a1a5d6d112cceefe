// SPDX-License-Identifier: Apache-2.0
// Nodes that take blocks of a pool, and what must hold of the blocks whatever they do.
import assert from "node:assert/strict";
import type { World } from "../../../test/support/world.ts";
import { ownedIn } from "../../cache/block-index.ts";
import { fromNumber, parseCidr } from "../../ip/address.ts";
import { fullInterval, sizeOf } from "../../ip/ip-range.ts";
import type { PoolRecord } from "../../pool/pool.ts";
import type { Stored } from "../../store/store.ts";
import type { BlockFacts } from "../block-facts.ts";
import type { NodeNeed } from "../block-plan.ts";
import { BlockDistributor } from "../distributor.ts";
import type { BlockEvidence } from "../give-back.ts";

/** Nodes and their pods, and what is known of their ends. */
export class Nodes implements BlockFacts {
  readonly pods = new Map<string, number>(); // node -> pods that need an address
  readonly fenced = new Set<string>();
  readonly returned = new Set<string>(); // uids of blocks that their agents gave back

  nodesFor(): readonly NodeNeed[] {
    return [...this.pods].map(([node, pods]) => ({ node, nodeUID: `uid-of-${node}`, pods }));
  }

  async evidence({ uid, record }: Stored<"block">): Promise<BlockEvidence | undefined> {
    if (this.returned.has(uid)) return { kind: "returned", uid };
    return this.fenced.has(record.node) ? { kind: "fenced", node: record.node } : undefined;
  }
}

export function distributor(world: World, nodes: Nodes): BlockDistributor {
  return new BlockDistributor({ ...world.context, view: world.cache }, nodes);
}

/** How many addresses each node may give. */
export async function capacities(world: World): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const { record } of await world.all("block")) {
    if (record.granted !== true || record.releasedAt !== undefined) continue;
    const usable = ownedIn(record).intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);
    found[record.node] = (found[record.node] ?? 0) + Number(usable);
  }
  return found;
}

/** No address is in two blocks, each block is the pool's own size, and what is reserved is nobody's to give. */
export async function check(world: World, length: number): Promise<void> {
  const owner = new Map<bigint, string>(); // address -> block
  const reserved = new Set((await world.all("reservation")).map(({ key }) => key));
  for (const { key, record } of await world.all("block")) {
    const network = parseCidr(key);
    assert.ok(network && network.prefixLength === length);
    for (let n = fullInterval(network).first; n <= fullInterval(network).last; n++) {
      assert.equal(owner.get(n), undefined, `in ${owner.get(n)} and in ${key}`);
      owner.set(n, key);
    }
    if (record.granted !== true) continue;
    for (const { first, last } of ownedIn(record).intervals) {
      for (let n = first; n <= last; n++)
        assert.ok(
          !reserved.has(fromNumber(n, "IPv4")),
          `${fromNumber(n, "IPv4")} is reserved, and in ${key}`,
        );
    }
  }
}

export function shared(length: number): PoolRecord {
  return {
    name: "web",
    spec: {
      ranges: [{ cidr: "10.0.0.0/24", from: "10.0.0.50", to: "10.0.0.70" }],
      blockSize: { ipv4: length },
      cooldown: "30s",
    },
  };
}
