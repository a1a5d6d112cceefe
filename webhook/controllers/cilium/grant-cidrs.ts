// SPDX-License-Identifier: Apache-2.0

import { grantNodeCidrs } from "../../../allocator/blocks/node-cidr-grant.ts";
import { type CidrNode, isHeld, planNodeCidrs } from "../../../allocator/blocks/node-cidr-plan.ts";
import type { PoolFaults } from "../../../allocator/blocks/pool-faults.ts";
import type { RecentGrants } from "../../../allocator/blocks/recent-grants.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import type { Family } from "../../../allocator/ip/address.ts";
import type { Block } from "../../../allocator/model/block.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { ObservedNode } from "../../cluster-state/informers.ts";
import type { CiliumMode, CiliumNode } from "./cilium-node.ts";
import type { HeldAddresses } from "./held-addresses.ts";
import type { NodeView } from "./node-writer.ts";
import type { Grant } from "./plan.ts";
import { cidrsOf } from "./situation.ts";

interface GrantDeps {
  readonly context: Context;
  readonly view: RecordCache;
  readonly mode: CiliumMode;
  readonly ciliumNodes: { all(): Iterable<readonly [string, CiliumNode]> };
  readonly recent: RecentGrants;
  readonly faults: PoolFaults;
  readonly mayWrite: () => boolean;
}

export interface NodeAbout {
  readonly object: ObservedNode;
  readonly wrong: readonly string[];
  readonly held: HeldAddresses;
}

/** CIDRs that a node gets in one pass: an agent may ask for any number, and others have their turn. */
const MOST_AT_ONCE = 16;
/** That it has in all. */
export const MOST_OF_A_NODE = 256;

/** Makes the CIDRs that the nodes want of these pools. */
export async function grantCidrs(deps: GrantDeps, pools: readonly Pool[], wanted: readonly NodeRequest[]) {
  const { context, view, mode, ciliumNodes, mayWrite, recent, faults } = deps;
  const blocks = recent.beside(view.blocks()).map(({ record }) => record);
  const held = Map.groupBy(
    blocks.filter((block) => isHeld(block, "Cilium")),
    ({ node }) => node,
  );
  const nodes = wanted.map(({ object, grants, view: { node, blocks: has } }): CidrNode => {
    const wants: Partial<Record<Family, number>> = {};
    let left = MOST_OF_A_NODE - (held.get(object.name)?.length ?? 0);
    for (const grant of grantsOf(pools, grants)) {
      const more = Math.max(0, Math.min(blocksFor(grant), MOST_AT_ONCE, left));
      left -= more;
      wants[grant.family] = countOf(pools, has, grant.family) + more;
    }
    const place = nextPlace(cidrsOf(mode, node).length, held.get(object.name) ?? []);
    return { node: object.name, nodeUID: object.uid, labels: object.labels, wants, place };
  });
  const plan = planNodeCidrs({
    ...{ use: "Cilium", pools, nodes },
    lineOf: (node) => faults.lineOf(node),
    beside: view.pools(),
    blocks: blocks.filter(({ pool }) => pools.some(({ name }) => name === pool)),
    unpickable: (pool, family) => view.unpickable(pool, family),
    inUse: [...ciliumNodes.all()].flatMap(([node, object]) =>
      cidrsOf(mode, object).map((cidr) => ({ node, cidr })),
    ),
  });
  const granted = new Map<string, Stored<"block">[]>();
  for await (const lot of grantNodeCidrs({ ...context, view, faults }, plan, mayWrite)) {
    for (const stored of lot) {
      recent.keep(stored);
      const { node } = stored.record;
      granted.set(node, [...(granted.get(node) ?? []), stored]);
    }
  }
  return { granted, short: plan.short };
}

/**
 * Where the node's object will name what is made now: behind all that it names, and behind what it is yet to name. That is its order from then
 * on: two that were made in one second are not told apart by their times.
 */
function nextPlace(listed: number, held: readonly Block[]): number {
  return Math.max(listed, held.length, ...held.map(({ place = -1 }) => place + 1));
}

export interface NodeRequest extends NodeAbout {
  readonly view: NodeView;
  readonly grants: readonly Grant[];
  /** There is no pool that could give it what it needs. */
  readonly lacksPool: boolean;
}

export function grantsOf(pools: readonly Pool[], grants: readonly Grant[]): readonly Grant[] {
  return grants.filter((grant) => grant.pools.some((name) => pools.some((pool) => pool.name === name)));
}

/** What the node lacks, in blocks of the size that it will get first. */
function blocksFor({ addresses, blockSize }: Grant): number {
  return Math.max(1, Math.ceil(addresses / blockSize));
}

function countOf(pools: readonly Pool[], has: readonly Stored<"block">[], family: Family): number {
  const names = new Set(pools.map(({ name }) => name));
  return has.filter(({ record }) => names.has(record.pool) && familyOfCidr(record.cidr) === family).length;
}

function familyOfCidr(cidr: string): Family {
  return cidr.includes(":") ? "IPv6" : "IPv4";
}
