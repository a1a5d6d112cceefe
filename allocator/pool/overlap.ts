// SPDX-License-Identifier: Apache-2.0
import { type Refusal, refuse } from "../base/errors.ts";
import { classify, overlap, type Pool } from "./pool.ts";

/** Why the pool cannot stand beside the others: one address in two pools could be given out by two rules at once. */
export function findOverlap(pools: readonly Pool[], pool: Pool): Refusal | undefined {
  for (const other of pools) {
    if (other.name === pool.name) continue;
    const shared = overlap(pool, other);
    if (shared !== undefined) {
      const range = shared.first === shared.last ? shared.first : `${shared.first}-${shared.last}`;
      return refuse(
        "POOL_OVERLAPS",
        `pools ${pool.name} and ${other.name} both contain ${range}; change from, to or cidr of one of them`,
        {
          pool: pool.name,
          other: other.name,
        },
      );
    }
    const gateway = [...pool.gateways].find((address) => classify(other, address) === "open");
    const theirs = [...other.gateways].find((address) => classify(pool, address) === "open");
    if (gateway !== undefined || theirs !== undefined) {
      const [owner, giver] = gateway !== undefined ? [pool.name, other.name] : [other.name, pool.name];
      return refuse(
        "POOL_OVERLAPS",
        `the gateway ${gateway ?? theirs} of pool ${owner} could be given out by pool ${giver}; exclude it there`,
        {
          pool: pool.name,
          other: other.name,
        },
      );
    }
  }
  return undefined;
}
