// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../base/ports.ts";
import { type Cidr, FAMILIES, type Family, parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import type { Interval } from "../ip/ip-range.ts";
import type { Block, BlockUse } from "../model/block.ts";
import { cutLength, cutSpace } from "../pool/blocks.ts";
import { matches } from "../pool/label-selector.ts";
import { bySpecificity } from "../pool/node-cidrs.ts";
import { overlap, type Pool } from "../pool/pool.ts";
import type { NodeCidrUse } from "../pool/pool-spec.ts";
import { isTooLarge } from "./cidr-pieces.ts";
import type { BlockRequest } from "./grant.ts";

/** A node that is to have CIDRs. */
export interface CidrNode {
  readonly node: string;
  readonly nodeUID: string;
  readonly labels: Labels;
  /** How many of each family it is to have in all, with those that it has. */
  readonly wants: Partial<Record<Family, number>>;
  /** Where its object will name the first of those that it gets, and the others behind; absent: in no order. */
  readonly place?: number;
}

/** A CIDR that an object of the cluster says a node has. */
export interface NamedCidr {
  readonly node: string;
  readonly cidr: Cidr;
}

/** All that decides who gets a CIDR, as of one moment. */
export interface CidrSnapshot {
  readonly use: NodeCidrUse;
  /** All pools: those for something else are only looked at for what they share with others. */
  readonly pools: readonly Pool[];
  /** More of them that give nothing here and are looked at in the same way; absent: none. */
  readonly beside?: readonly Pool[];
  readonly nodes: readonly CidrNode[];
  /** Nodes with a smaller number come first; of the same, and if absent, by name. */
  readonly lineOf?: (node: CidrNode) => number;
  readonly blocks: readonly Block[];
  /** What of a pool is in somebody's hands by any record, or is kept back: no CIDR has an address of it. */
  readonly unpickable: (pool: Pool, family: Family) => Iterable<Interval>;
  /** CIDRs that the cluster's objects say nodes have, whoever gave them. */
  readonly inUse: readonly NamedCidr[];
}

/** CIDRs of one family of a pool that are to be made, one for each request. */
interface CidrGrants {
  readonly pool: Pool;
  readonly requests: readonly BlockRequest[];
  /** Numbers of the CIDRs that are not to be had. */
  readonly taken: IntervalSet;
}

/** A pool that a node without a CIDR could have it from, and why it did not. */
export interface ExhaustedPool {
  readonly pool: string;
  readonly length: number;
  readonly total: bigint;
  readonly reason: "full" | "disabled" | "overlaps";
  /** For `overlaps`: with which pool. */
  readonly other?: string;
  /** What a node has by its object alone: most of the pool, and much more than a node should have. */
  readonly large?: { readonly node: string; readonly cidr: string };
  /** The nodes that have most of it, the first of them. */
  readonly owners: readonly { readonly node: string; readonly blocks: number }[];
}

export interface CidrShortage {
  readonly node: string;
  readonly nodeUID: string;
  readonly family: Family;
  readonly missing: number;
  /** Those that select the node and have the family; none: no pool does. */
  readonly pools: readonly ExhaustedPool[];
}

export interface NodeCidrPlan {
  readonly grants: readonly CidrGrants[];
  readonly short: readonly CidrShortage[];
}

/** Owners that a message names. */
const NAMED = 5;

/**
 * Which pool each node gets its CIDRs from: of those that select it the one that asks for most labels, then by priority, then by name;
 * where that is full, the next. Which CIDR of the pool is settled when its record is made. Same snapshot in, same plan out; carried out,
 * it plans nothing more.
 */
export function planNodeCidrs(snapshot: CidrSnapshot): NodeCidrPlan {
  const ordered = bySpecificity(snapshot.pools, snapshot.use);
  const sources = FAMILIES.map((family) => {
    const having = ordered.filter((pool) => cutLength(pool, family) !== undefined);
    return [family, having.map((pool) => new Source(snapshot, pool, family))] as const;
  });
  const held = countHeld(snapshot);
  const short: CidrShortage[] = [];
  const { lineOf = () => 0 } = snapshot;
  const inLine = (a: CidrNode, b: CidrNode) => lineOf(a) - lineOf(b) || (a.node < b.node ? -1 : 1);
  for (const node of snapshot.nodes.toSorted(inLine)) {
    let { place } = node;
    for (const [family, all] of sources) {
      const wanted = (node.wants[family] ?? 0) - (held.get(`${node.node}/${family}`) ?? 0);
      if (wanted <= 0) continue;
      const own = all.filter(({ pool }) => matches(pool.spec.nodeSelector, node.labels));
      const missing = takeFrom(own, { ...node, ...(place !== undefined && { place }) }, wanted);
      if (place !== undefined) place += wanted - missing;
      if (missing > 0) short.push(shortageOf(node, family, missing, own));
    }
  }
  const grants = sources.flatMap(([, all]) => all).filter(({ requests }) => requests.length > 0);
  return { grants, short };
}

/** Gives how many are still missing. */
function takeFrom(sources: readonly Source[], node: CidrNode, wanted: number): number {
  let missing = wanted;
  const next = () => (node.place === undefined ? node : { ...node, place: node.place + wanted - missing });
  for (const source of sources) while (missing > 0 && source.take(next())) missing--;
  return missing;
}

function shortageOf(
  { node, nodeUID }: CidrNode,
  family: Family,
  missing: number,
  own: readonly Source[],
): CidrShortage {
  return { node, nodeUID, family, missing, pools: own.map((source) => source.exhausted()) };
}

/** What a node has: whatever its labels say now. One that cools is nobody's. */
function countHeld({ blocks, use }: CidrSnapshot): ReadonlyMap<string, number> {
  const held = new Map<string, number>(); // node/family -> CIDRs
  for (const block of blocks) {
    if (!isHeld(block, use)) continue;
    const key = `${block.node}/${parseCidr(block.cidr)?.family ?? ""}`;
    held.set(key, (held.get(key) ?? 0) + 1);
  }
  return held;
}

/** It is a node's, or will be once its grant is finished. */
export function isHeld(block: Block, use: BlockUse): boolean {
  return block.use === use && block.releasedAt === undefined;
}

/** One family of a pool, with what is left of it by the plan. */
class Source implements CidrGrants {
  readonly pool: Pool;
  readonly requests: BlockRequest[] = [];
  readonly taken = new IntervalSet();
  readonly #family: Family;
  readonly #snapshot: CidrSnapshot;
  readonly #total: bigint;
  readonly #other: string | undefined;
  readonly #large: ExhaustedPool["large"];
  #left: bigint;

  constructor(snapshot: CidrSnapshot, pool: Pool, family: Family) {
    this.pool = pool;
    this.#family = family;
    this.#snapshot = snapshot;
    const all = [...snapshot.pools, ...(snapshot.beside ?? [])];
    this.#other = all.find((other) => other.name !== pool.name && overlap(pool, other))?.name;
    const space = cutSpace(pool, family);
    this.#total = space?.count ?? 0n;
    this.#left = 0n;
    if (space === undefined || pool.disabled || this.#other !== undefined) return;
    for (const interval of snapshot.unpickable(pool, family))
      this.taken.addInterval(space.numbersOf(interval));
    const inUse = snapshot.inUse.filter(({ cidr }) => cidr.family === family);
    for (const { cidr } of inUse) this.taken.addInterval(space.numbersIn(cidr));
    const large = inUse.find(({ cidr }) => isTooLarge(space, cidr));
    this.#large = large && { node: large.node, cidr: large.cidr.text };
    this.#left = space.countWithout(this.taken);
  }

  take({ node, nodeUID, place }: CidrNode): boolean {
    if (this.#left <= 0n) return false;
    this.#left -= 1n;
    this.requests.push({ family: this.#family, node, nodeUID, ...(place !== undefined && { place }) });
    return true;
  }

  exhausted(): ExhaustedPool {
    const { pool } = this;
    const other = this.#other;
    return {
      pool: pool.name,
      length: cutLength(pool, this.#family) ?? 0,
      total: this.#total,
      reason: pool.disabled ? "disabled" : other === undefined ? "full" : "overlaps",
      ...(other === undefined ? {} : { other }),
      ...(this.#large === undefined ? {} : { large: this.#large }),
      owners: this.#owners(),
    };
  }

  #owners(): ExhaustedPool["owners"] {
    const counts = new Map<string, number>();
    for (const block of this.#snapshot.blocks) {
      if (block.pool !== this.pool.name || block.releasedAt !== undefined) continue;
      if (parseCidr(block.cidr)?.family === this.#family)
        counts.set(block.node, (counts.get(block.node) ?? 0) + 1);
    }
    const owners = [...counts].map(([node, blocks]) => ({ node, blocks }));
    return owners.sort((a, b) => b.blocks - a.blocks || (a.node < b.node ? -1 : 1)).slice(0, NAMED);
  }
}
