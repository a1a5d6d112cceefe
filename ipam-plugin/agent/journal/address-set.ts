// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, familyOf, fromNumber, toNumber } from "../../../allocator/ip/address.ts";
import { IntervalSet } from "../../../allocator/ip/interval-set.ts";

/** Told of addresses that sandboxes of any network begin to have, and have no more. */
export interface AddressUse {
  held(address: Address): void;
  /** Once for each time that it was held. `at`: milliseconds since 1970; absent: now. */
  freed(address: Address, at?: number): void;
  /** It was freed then, before this process began. */
  wasFreed(address: Address, at: number): void;
}

/**
 * The addresses of one scope that are taken on this node, each by one holder. The numbers are kept as runs, so that
 * looking for a free one costs the same at 10 and at 60,000.
 */
export class AddressSet {
  readonly #taken: Readonly<Record<Family, IntervalSet>> = {
    IPv4: new IntervalSet(),
    IPv6: new IntervalSet(),
  };
  readonly #holders = new Map<Address, string>(); // address -> id of the place that has it
  readonly #positions = new Map<number, Address>(); // index of the range set -> address given away last

  readonly #use: AddressUse | undefined;

  constructor(use?: AddressUse) {
    this.#use = use;
  }

  holderOf(address: Address): string | undefined {
    return this.#holders.get(address);
  }

  /** From now on the address is this holder's, whoever had it. */
  hold(address: Address, holder: string): void {
    const isNew = !this.#holders.has(address);
    this.#holders.set(address, holder);
    if (!isNew) return;
    this.#taken[familyOf(address)].add(toNumber(address));
    this.#use?.held(address);
  }

  /** Lets go of an address unless somebody else holds it by now. */
  release(address: Address, holder: string, at?: number): void {
    if (this.#holders.get(address) !== holder) return;
    this.#holders.delete(address);
    this.#taken[familyOf(address)].remove(toNumber(address));
    this.#use?.freed(address, at);
  }

  /** The smallest number from `from` to `last` that nobody holds. */
  nextFree(family: Family, from: bigint, last: bigint): bigint | undefined {
    return this.#taken[family].nextFree(from, last);
  }

  position(rangeSet: number): Address | undefined {
    return this.#positions.get(rangeSet);
  }

  advance(rangeSet: number, address: Address): void {
    this.#positions.set(rangeSet, address);
  }

  held(): readonly Address[] {
    return [...this.#holders.keys()];
  }
}

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
