// SPDX-License-Identifier: Apache-2.0
// Whether addresses that a request names agree with what else it says, whoever has them.
import type { Refusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, areOfFamilies } from "../ip/address.ts";
import { macOfAddress, refuseAddress } from "../ip/mac.ts";
import type { AddressEntry } from "../model/address-request.ts";
import { FIRST_INTERFACE, formatAddresses, interfacesOf, namesOf, saidOf } from "../model/interfaces.ts";
import type { Pool } from "../pool/pool.ts";
import type { AddressConstraints } from "./plan.ts";
import { isIn, partOf, poolNameIn } from "./pool-sources.ts";
import { quoted } from "./refusal-messages.ts";

/** Refuses addresses and families that contradict each other: following either would not be what was asked for. */
export function familiesUnsaid(
  { families, interfaces }: AddressConstraints,
  entry: AddressEntry,
): Refusal | undefined {
  if (families === undefined) return undefined;
  const lists = Object.values(interfacesOf(interfaces, entry) ?? { first: entry });
  const isSaid = (list: AddressEntry) => {
    // a MAC address is of no family, though it is kept as an address
    const named = list.filter((one) => macOfAddress(one) === undefined);
    return (named.length === 0 && list.length > 0) || areOfFamilies(named, families);
  };
  if (lists.every(isSaid)) return undefined;
  const each = interfaces === undefined ? "" : " on each interface";
  return refuseAddress(
    "REQUEST_INVALID",
    `the request names ${formatAddresses(entry, interfaces).join(" and ")} and asks for ${families.join(" and ")}${each}; name an address of each family, or leave the families out`,
  );
}

/** Why the addresses do not fit the request, whoever has them. */
export function unconstrained(
  view: RecordReader,
  constraints: AddressConstraints,
  addresses: AddressEntry,
): Refusal | undefined {
  return ofOtherPools(view, constraints, addresses) ?? familiesUnsaid(constraints, addresses);
}

/** Why they are of none of the pools that the request names, as far as pools have them. */
export function ofOtherPools(
  view: Pick<RecordReader, "poolOf"> & Partial<Pick<RecordReader, "pool">>,
  constraints: Pick<AddressConstraints, "pools" | "interfacePools" | "interfaces">,
  addresses: AddressEntry,
): Refusal | undefined {
  for (const address of addresses) {
    const [pool, pools] = [view.poolOf(address), poolsFor(constraints, address)];
    const why = pool && notNamed(pool, { pools }, address);
    if (why !== undefined && !pools?.some((name) => isInNamed(view, name, address))) return why;
  }
  return undefined;
}

/** Of two pools over each other the one that is named has it as well. */
function isInNamed(view: Partial<Pick<RecordReader, "pool">>, name: string, address: Address): boolean {
  const pool = view.pool?.(poolNameIn(name));
  return pool !== undefined && isIn(partOf(pool, name), address);
}

/** The pools that the address may be of; undefined: any. */
function poolsFor(
  { pools, interfacePools, interfaces }: Pick<AddressConstraints, "pools" | "interfacePools" | "interfaces">,
  address: Address,
) {
  if (interfacePools === undefined) return pools;
  const name = namesOf(interfaces ?? {}).find((one) => interfaces?.[one]?.includes(address));
  const own = saidOf(interfacePools, name ?? FIRST_INTERFACE) ?? [];
  return own.length === 0 ? undefined : own;
}

/** Why the address is of none of the pools that are named. */
export function notNamed(
  pool: Pool,
  constraints: { readonly pools?: readonly string[] | undefined },
  address: Address,
): Refusal | undefined {
  if (constraints.pools === undefined || constraints.pools.some((name) => isIn(partOf(pool, name), address)))
    return undefined;
  return refuseAddress(
    "ADDRESS_OUTSIDE",
    `address ${address} belongs to pool ${quoted(pool.name)}, and the request names ${constraints.pools.map(quoted).join(", ")}; name one or the other`,
    { address, pool: pool.name },
  );
}
