// SPDX-License-Identifier: Apache-2.0

import { listed } from "../../../allocator/base/listed.ts";
import type { ExhaustedPool } from "../../../allocator/blocks/node-cidr-plan.ts";
import type { NodeNote, PoolNote } from "../changed-events.ts";
import type { Lack } from "./operator.ts";

/** Nodes that a message names. */
const NAMED = 5;

const NO_POOL =
  "no pool with nodeCIDRs of use Cilium gives this node addresses: none selects it, or in multi-pool none has CIDRs for what its agent asks for (status.ipam.operator-status.error of its CiliumNode); create an IPPool, or change a nodeSelector";

/** Nodes that no pool has anything for, by name. */
export function unservedNodes(lacks: readonly Lack[]): ReadonlyMap<string, NodeNote> {
  const unserved = lacks.filter(({ pools }) => pools.length === 0);
  return new Map(unserved.map(({ node }) => [node, { node, note: NO_POOL }]));
}

interface Short {
  readonly pool: string;
  readonly family: string;
  /** The pool that has the same addresses. */
  readonly other: string | undefined;
  readonly large: ExhaustedPool["large"];
  readonly nodes: Set<string>;
}

/** What is to be told of each pool that has nothing more for nodes that select it, of each family. */
export function shortPools(lacks: readonly Lack[]): ReadonlyMap<string, PoolNote> {
  const short = new Map<string, Short>();
  for (const { pools, family, node } of lacks) {
    for (const { pool, reason, other, large } of pools) {
      const key = `${pool} ${family}`;
      const one = short.get(key) ?? {
        ...{ pool, family, large, nodes: new Set() },
        other: reason === "overlaps" ? (other ?? "another") : undefined,
      };
      short.set(key, one);
      one.nodes.add(node);
    }
  }
  return new Map([...short].map(([key, one]) => [key, { pool: one.pool, note: wordsOf(one) }]));
}

function wordsOf({ family, other, large, nodes }: Short): string {
  const named = listed([...nodes].sort(), NAMED);
  const lack = `Cilium's pods lack ${family} addresses`;
  if (large !== undefined && other === undefined)
    return `${lack} on ${named}, and the CiliumNode of ${large.node} has ${large.cidr}, with which no CIDR of this pool is free; take it out there`;
  return other === undefined
    ? `${lack} and no CIDR of this pool is free, on ${named}; add a range, or another pool with nodeCIDRs of use Cilium`
    : `${lack} on ${named}, and this pool shares its addresses with pool ${other}; take the ranges out of one of the two`;
}
