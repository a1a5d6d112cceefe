// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "../../../allocator/base/ports.ts";
import {
  type FamilyInterval,
  formatInterval,
  intersection,
  without,
} from "../../../allocator/ip/ip-range.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import { formatSet, type RangeSet } from "../../cni/range-set.ts";

/** Addresses that a network's own ranges and a pool both give. */
export interface RangeOverlap {
  readonly network: string;
  readonly pool: string;
  /** The first of them: `10.20.0.5-10.20.0.9`. */
  readonly addresses: string;
}

/** Networks that are remembered. Whoever may define networks can name as many as they like. */
const MOST_NETWORKS = 256;

interface Known {
  readonly ranges: string;
  readonly pools: readonly Pool[];
  readonly overlaps: readonly RangeOverlap[];
}

/**
 * Networks whose own `ranges` lie in a pool: this node gives from the ranges without asking the pool. That is no error, because the
 * network may be another layer 2 than the pool's, which nobody can see here; so it is told and not refused.
 */
export class RangeOverlaps {
  readonly #log: Logger;
  readonly #known = new Map<string, Known>(); // network -> what was found last

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Says in the log what is new. Cheap while neither the ranges nor the pools have changed. */
  look(network: string, sets: readonly RangeSet[], pools: readonly Pool[]): void {
    const ranges = sets.map(formatSet).join(";");
    const before = this.#known.get(network);
    if (before?.ranges === ranges && isSame(before.pools, pools)) return;
    const overlaps = overlapsOf(network, sets, pools);
    this.#known.set(network, { ranges, pools, overlaps });
    const [oldest] = this.#known.size > MOST_NETWORKS ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
    const told = new Set(before?.overlaps.map(({ pool, addresses }) => `${pool} ${addresses}`));
    for (const { pool, addresses } of overlaps) {
      if (told.has(`${pool} ${addresses}`)) continue;
      this.#log.warn("ranges of a network lie in a pool of Berth", {
        ...{ network, pool, address: addresses },
        consequence:
          "if both are one layer 2, a pod of the network and one of the pool may get the same address",
        remedy: "exclude the addresses in the pool, or change the network's ranges",
      });
    }
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

function isSame(before: readonly Pool[], now: readonly Pool[]): boolean {
  return before.length === now.length && before.every((pool, i) => pool === now[i]);
}

function overlapsOf(
  network: string,
  sets: readonly RangeSet[],
  pools: readonly Pool[],
): readonly RangeOverlap[] {
  return pools.flatMap((pool) => {
    const shared = firstShared(pool, sets);
    return shared === undefined ? [] : [{ network, pool: pool.name, addresses: formatInterval(shared) }];
  });
}

/** What a pool excludes it never gives. */
function firstShared({ ranges, excluded }: Pool, sets: readonly RangeSet[]): FamilyInterval | undefined {
  for (const { family, bounds } of sets.flat()) {
    const never = excluded.filter((one) => one.family === family).map(({ interval }) => interval);
    for (const range of ranges) {
      const both = range.family === family ? intersection(range, bounds) : undefined;
      const [interval] = both === undefined ? [] : without([both], never);
      if (interval !== undefined) return { family, interval };
    }
  }
  return undefined;
}
