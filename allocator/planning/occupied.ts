// SPDX-License-Identifier: Apache-2.0
// Addresses that pods of other CNIs, nodes or the host have: no record of Berth's says so (ADR 0026).

import type { Refusal } from "../base/errors.ts";
import { listed } from "../base/listed.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, compareAddresses } from "../ip/address.ts";
import { refuseAddress } from "../ip/mac.ts";
import { describeOccupant, type Occupant } from "../model/occupant.ts";
import { classify, type Pool } from "../pool/pool.ts";
import type { AddressConstraints } from "./plan.ts";
import { alternatives, quoted, withoutNames } from "./refusal-messages.ts";

/**
 * Why an address that is asked for by name is not given: somebody has it, and not from Berth. A pool with `spec.networks` may be for
 * another network, so nothing is refused there. The pod of the claim's own name may have it from another CNI: its successor comes
 * when it has gone.
 */
export function occupied(
  view: RecordReader,
  pool: Pool,
  address: Address,
  constraints: Pick<AddressConstraints, "namespace" | "name" | "ownAddresses">,
): Refusal | undefined {
  const occupant =
    constraints.ownAddresses?.includes(address) === true ? undefined : view.occupant?.(address);
  if (occupant === undefined || pool.spec.networks !== undefined) return undefined;
  if (view.reservation(address) !== undefined) return undefined; // Berth's by now; who has it is said in other words
  const isOwn =
    occupant.kind === "pod" &&
    occupant.namespace === constraints.namespace &&
    occupant.name === constraints.name;
  return isOwn ? undefined : inUse(view, pool, address, occupant);
}

function inUse(view: RecordReader, pool: Pool, address: Address, occupant: Occupant): Refusal {
  const { kind, namespace, name } = occupant;
  const near = alternatives(view, pool, address);
  const words = `address ${address} in pool ${quoted(pool.name)} is in use by ${describeOccupant(occupant)}, and not from Berth`;
  const next =
    kind === "pod"
      ? "delete that pod first, or set spec.networks if the pool is for another network than that pod's"
      : "exclude it from the pool";
  return refuseAddress("ADDRESS_TAKEN", `${words}${near}; or ${next}`, {
    address,
    pool: pool.name,
    occupant: kind,
    holder: namespace === "" ? name : `${namespace}/${name}`,
  });
}

/** The words for who may not know who has it. */
export function addressInUse(view: RecordReader, pool: Pool | undefined, address: Address): Refusal {
  return withoutNames(view, { pool, address, why: "is in use, and not from Berth" });
}

/** An address, and who has it. */
export type Occupied = readonly [address: Address, occupant: Occupant];

/** Those that the pool would give. */
export function occupiedIn(pool: Pool, all: Iterable<Occupied>): Occupied[] {
  const found = new Map<Address, Occupant>();
  for (const [address, occupant] of all) {
    if (["open", "reserved"].includes(classify(pool, address))) found.set(address, occupant);
  }
  return [...found].sort(([a], [b]) => compareAddresses(a, b));
}

/** `10.20.0.1 (node a), 10.20.0.60 (pod shop/x) and 3 more`; of an address whose occupant is not to be named the address alone. */
export function listedOccupied(
  found: readonly (readonly [Address, Occupant | undefined])[],
  most: number,
): string {
  return listed(found, most, ([address, occupant]) =>
    occupant === undefined ? address : `${address} (${describeOccupant(occupant)})`,
  );
}
