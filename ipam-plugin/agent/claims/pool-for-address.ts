// SPDX-License-Identifier: Apache-2.0
// Which pool says how an address of a claim is reached, where two pools are over each other (ADR 0038).

import { isDeepStrictEqual } from "node:util";
import { type Refusal, refuse } from "../../../allocator/base/errors.ts";
import type { RecordReader } from "../../../allocator/cache/reader.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import { type Claim, claimKey } from "../../../allocator/model/claim.ts";
import { type Pool, rangeOf } from "../../../allocator/pool/pool.ts";
import { isOnNetwork } from "../../../allocator/pool/pool-networks.ts";

export interface PoolsOfAddresses {
  pools(): Iterable<Pool>;
  /** Absent: this process does not follow reservations. */
  reservation?: RecordReader["reservation"];
}

/**
 * The pool that the address was reserved of. The reservation names it; an agent in a cluster does not follow reservations, and goes by what
 * the claim asks for, and by the names of the network that it gives to. Where none of them says it, and the pools do not say the same, the
 * sandbox might get another network's gateway: then it is refused. Undefined: no pool contains the address.
 */
export function poolFor(
  view: PoolsOfAddresses,
  claim: Claim,
  { address, names }: { readonly address: Address; readonly names: readonly string[] },
): Pool | Refusal | undefined {
  const all = poolsFor(view, claim, address);
  const here = all.filter((pool) => isOnNetwork(pool, names));
  const [left, ...others] = here.length > 0 ? here : all;
  if (left === undefined) return undefined;
  const said = reached(left, address);
  if (others.every((other) => isDeepStrictEqual(reached(other, address), said))) return left;
  return ambiguous(claim, address, [left, ...others]);
}

/** The pools that the address may have been reserved of: one, where the reservation or what the claim asks for says which. */
export function poolsFor(view: PoolsOfAddresses, claim: Claim, address: Address): readonly Pool[] {
  const all: Pool[] = [];
  for (const pool of view.pools()) if (rangeOf(pool, address) !== undefined) all.push(pool);
  if (all.length < 2) return all;
  const reserved = view.reservation?.(address)?.record;
  const isIts = reserved !== undefined && claimKey(reserved.claim) === claimKey(claim);
  const home = isIts ? all.find(({ name }) => name === reserved.pool) : undefined;
  if (home !== undefined) return [home];
  const { pools = [], interfacePools = {} } = claim.request;
  const asked = [...pools, ...Object.values(interfacePools).flat()];
  const named = all.filter(({ name }) => asked.includes(name));
  return named.length > 0 ? named : all;
}

function reached(pool: Pool, address: Address): unknown {
  const { prefixLength, gateway } = rangeOf(pool, address) ?? {};
  return { prefixLength, gateway, routes: pool.spec.routes ?? [], dns: pool.spec.dns ?? {} };
}

function ambiguous(claim: Claim, address: Address, pools: readonly Pool[]): Refusal {
  const [pool = "", other = ""] = pools.map(({ name }) => name);
  const key = claimKey(claim);
  const words = `pools ${pool} and ${other} both contain ${address} of claim ${key}, and differ in how it is reached (gateway, prefix length, routes or dns); leave the address out of the pool that it is not reserved of (kubectl get ipreservations)`;
  return refuse("POOL_OVERLAPS", words, { address, claim: key, pool, other });
}
