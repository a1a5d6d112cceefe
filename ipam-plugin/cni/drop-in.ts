// SPDX-License-Identifier: Apache-2.0
import type { Address, Cidr, Family } from "../../allocator/ip/address.ts";
import type { Interval } from "../../allocator/ip/ip-range.ts";
import { type CniError, cniError } from "./errors.ts";

/** What the `ipam` of a network asks for that was written for another IPAM plugin: pools that there are have to serve it. */
export interface DropIn {
  /** `ipam.type`. */
  readonly type: string;
  /** A pod gets an address of each; empty: of whichever pools serve it. */
  readonly wants: readonly Want[];
  /** It gets none of any other family; absent: one of each that its pools have. */
  readonly families?: readonly Family[];
  /** Only a pod that has asked by this annotation gets an address. */
  readonly annotation?: string;
}

/** The first that has an address serves. */
export interface Want {
  /** As the configuration has it: `ipam.range`. */
  readonly field: string;
  readonly family?: Family;
  /** Names of pools, and networks whose addresses a pool has. */
  readonly of: readonly (string | WantedNetwork)[];
}

/** Addresses that a pool serves whose own all are among them. */
export interface WantedNetwork {
  readonly cidr: Cidr;
  readonly open: readonly Interval[];
  /** Ends and holes of it, as whoever makes the pool would write them. */
  readonly from?: Address;
  readonly to?: Address;
  readonly exclude?: readonly string[];
  /** The pool has this one. */
  readonly gateway?: Address;
  /** The pool's own network is the same: addresses have the prefix length of this one. */
  readonly isWhole?: boolean;
}

export function invalid(msg: string): CniError {
  return cniError("INVALID_CONFIG", msg);
}
