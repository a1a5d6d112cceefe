// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "../../../allocator/base/ports.ts";
import {
  type FamilyInterval,
  formatInterval,
  intersection,
  without,
} from "../../../allocator/ip/ip-range.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import { servesNetwork } from "../../../allocator/pool/pool-networks.ts";
import { formatSet, type RangeSet } from "../../cni/range-set.ts";

/** Addresses that a network's own ranges and a pool both have. */
interface RangeOverlap {
  readonly network: string;
  readonly pool: string;
  /** The first of them: `10.20.0.5-10.20.0.9`. */
  readonly addresses: string;
}

/** Addresses of a network's own ranges that a pool gives, and nobody else. */
export interface PoolPart extends FamilyInterval {
  readonly pool: string;
}

/** Networks that are remembered. Whoever may define networks can name as many as they like. */
const MOST_NETWORKS = 256;

interface Known {
  readonly sets: readonly RangeSet[];
  readonly ranges: string;
  readonly pools: readonly Pool[];
  readonly overlaps: readonly RangeOverlap[];
  readonly parts: readonly PoolPart[];
}

/**
 * Networks whose own `ranges` lie in a pool. A pool that may serve the network by claims or blocks has its addresses for itself: nothing
 * else would keep two pods of one layer 2 from one address. What a pool for other networks has may be another layer 2's.
 */
export class RangeOverlaps {
  readonly #log: Logger;
  readonly #known = new Map<string, Known>(); // network -> what was found last

  constructor(log: Logger) {
    this.#log = log;
  }

  /** What the ranges must not give. Says in the log what is new. Cheap while neither the ranges nor the pools have changed. */
  look(network: string, sets: readonly RangeSet[], pools: readonly Pool[]): readonly PoolPart[] {
    const before = this.#known.get(network);
    const ranges = before?.sets === sets ? before.ranges : sets.map(formatSet).join(";");
    if (before?.ranges === ranges && isSame(before.pools, pools)) return before.parts;
    const giving = pools.filter(isGiven);
    const overlaps = overlapsOf(network, sets, giving);
    const parts = giving
      .filter((pool) => servesNetwork(pool, network) === "yes")
      .flatMap((pool) => partsOf(pool, sets));
    this.#known.set(network, { sets, ranges, pools, overlaps, parts });
    const [oldest] = this.#known.size > MOST_NETWORKS ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
    const warned = new Set(before?.overlaps.map(({ pool, addresses }) => `${pool} ${addresses}`));
    for (const { pool, addresses } of overlaps) {
      if (warned.has(`${pool} ${addresses}`)) continue;
      const isLeftOut = parts.some((part) => part.pool === pool);
      this.#log.warn("ranges of a network lie in a pool of Berth", {
        ...{ network, pool, address: addresses },
        consequence: isLeftOut
          ? "the pool may serve the network, so the network's ranges do not give these addresses"
          : "if both are one layer 2, a pod of the network and one of the pool may get the same address",
        remedy:
          "exclude the addresses in the pool, or change the network's ranges; if they are two layer 2 networks, say in the pool's spec.networks which ones it serves",
      });
    }
    return parts;
  }

  /** As of the last look at each network. */
  all(): readonly RangeOverlap[] {
    return [...this.#known.values()].flatMap(({ overlaps }) => overlaps);
  }

  /** How many networks share addresses with each pool that shares any. */
  networksByPool(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>(); // pool -> networks
    for (const { pool } of this.all()) counts.set(pool, (counts.get(pool) ?? 0) + 1);
    return counts;
  }
}

/**
 * Whether somebody else gives pods addresses of the pool. What is for `spec.podCIDRs` is for the network of the node, which this one is. Of
 * their nodes' CIDRs Cilium's agents give.
 */
function isGiven({ spec }: Pool): boolean {
  return spec.nodeCIDRs?.use !== "PodCIDR";
}

function isSame(before: readonly Pool[], now: readonly Pool[]): boolean {
  return before.length === now.length && before.every((pool, i) => pool === now[i]);
}

function overlapsOf(
  network: string,
  sets: readonly RangeSet[],
  pools: readonly Pool[],
): readonly RangeOverlap[] {
  return pools
    .filter((pool) => servesNetwork(pool, network) !== "no")
    .flatMap((pool) => {
      const [shared] = partsOf(pool, sets);
      return shared === undefined ? [] : [{ network, pool: pool.name, addresses: formatInterval(shared) }];
    });
}

/** What the pool has of the ranges. What it excludes it never gives. */
function partsOf({ name, ranges, excluded }: Pool, sets: readonly RangeSet[]): readonly PoolPart[] {
  return sets.flat().flatMap(({ family, bounds }) => {
    const never = excluded.filter((one) => one.family === family).map(({ interval }) => interval);
    return ranges.flatMap((range) => {
      const both = range.family === family ? intersection(range, bounds) : undefined;
      const left = both === undefined ? [] : without([both], never);
      return left.map((interval) => ({ pool: name, family, interval }));
    });
  });
}
