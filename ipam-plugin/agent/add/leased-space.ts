// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, fromNumber } from "../../../allocator/ip/address.ts";
import type { AddressSet } from "../journal/address-set.ts";

/** What choosing an address has to know of those that are taken. */
export type TakenAddresses = Pick<AddressSet, "holderOf" | "nextFree" | "position">;

/** The node's own addresses, and those that host-local gave to containers that may be up. */
export function withLeases(space: AddressSet, leases: ReadonlyMap<Address, string>): TakenAddresses {
  if (leases.size === 0) return space;
  return {
    holderOf: (address) => space.holderOf(address) ?? leases.get(address),
    position: (rangeSet) => space.position(rangeSet),
    nextFree(family: Family, from: bigint, last: bigint) {
      let free = space.nextFree(family, from, last);
      while (free !== undefined && leases.has(fromNumber(free, family))) {
        free = free < last ? space.nextFree(family, free + 1n, last) : undefined;
      }
      return free;
    },
  };
}
