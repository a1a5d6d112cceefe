// SPDX-License-Identifier: Apache-2.0
// Addresses of pools that a network's own configuration names: they are the pools' to give.

import { isRefusal, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { type Address, type Family, familyOf, toNumber } from "../../../allocator/ip/address.ts";
import { contains } from "../../../allocator/ip/ip-range.ts";
import { classify, type Pool } from "../../../allocator/pool/pool.ts";
import { servesNetwork } from "../../../allocator/pool/pool-networks.ts";
import type { RangeSet } from "../../cni/range-set.ts";
import type { TakenAddresses } from "../journal/address-set.ts";
import type { PoolPart } from "../services/range-overlaps.ts";
import { pickAddresses } from "./from-ranges.ts";

/** The same, with the pools' addresses passed over. */
export function withoutPools(space: TakenAddresses, parts: readonly PoolPart[]): TakenAddresses {
  if (parts.length === 0) return space;
  return {
    holderOf: (address) => space.holderOf(address),
    position: (rangeSet) => space.position(rangeSet),
    nextFree(family: Family, from: bigint, last: bigint) {
      let free = space.nextFree(family, from, last);
      while (free !== undefined) {
        const part = partAt(parts, family, free);
        if (part === undefined) return free;
        const next: bigint = part.interval.last + 1n;
        free = next > last ? undefined : space.nextFree(family, next, last);
      }
      return undefined;
    },
  };
}

function partAt(parts: readonly PoolPart[], family: Family, n: bigint): PoolPart | undefined {
  return parts.find((part) => part.family === family && contains(part.interval, n));
}

/** An address that the runtime asks for by name. */
export function requestedOfPool(
  network: string,
  requested: readonly Address[],
  parts: readonly PoolPart[],
): Refusal | undefined {
  for (const address of requested) {
    const part = partAt(parts, familyOf(address), toNumber(address));
    if (part !== undefined) return ofPool(network, address, part.pool);
  }
  return undefined;
}

/** The first of the addresses that a pool for this network has: it may be somebody's. */
export function staticOfPool(
  network: string,
  addresses: readonly Address[],
  pools: Iterable<Pool>,
): Refusal | undefined {
  for (const pool of pools) {
    if (servesNetwork(pool, network) !== "yes") continue;
    const own = addresses.find((address) => ["open", "reserved"].includes(classify(pool, address)));
    if (own !== undefined) return ofPool(network, own, pool.name);
  }
  return undefined;
}

function ofPool(network: string, address: Address, pool: string): Refusal {
  const words = `address ${address} is of pool "${pool}", which may serve network ${network}, so that the network's own configuration does not give it; ask for it with berth.dev/ips, exclude it in the pool, or, if they are two layer 2 networks, name those of the pool in its spec.networks`;
  return refuse("POOL_FORBIDDEN", words, { address, pool });
}

/** The words for ranges of which nothing is free beside what pools have. */
export function withPoolWords(refusal: Refusal, network: string, parts: readonly PoolPart[]): Refusal {
  if (parts.length === 0 || refusal.code !== "POOL_EXHAUSTED") return refusal;
  const pools = [...new Set(parts.map(({ pool }) => `"${pool}"`))].join(", ");
  const words = `addresses of pool ${pools} among them are the pool's, which may serve network ${network}: change the ranges, or, if they are two layer 2 networks, name those of the pool in its spec.networks`;
  return { ...refusal, message: `${refusal.message}; ${words}` };
}

const NOTHING_TAKEN: TakenAddresses = {
  holderOf: () => undefined,
  position: () => undefined,
  nextFree: (_, from, last) => (from <= last ? from : undefined),
};

/** Whether the ranges can give anything to anybody. */
export function emptiedByPools(
  network: string,
  sets: readonly RangeSet[],
  parts: readonly PoolPart[],
): Refusal | undefined {
  if (parts.length === 0) return undefined;
  const pick = pickAddresses(withoutPools(NOTHING_TAKEN, parts), sets, []);
  return isRefusal(pick) ? withPoolWords(pick, network, parts) : undefined;
}
