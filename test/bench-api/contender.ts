// SPDX-License-Identifier: Apache-2.0
import { type Address, fromNumber, parseCidr } from "../../allocator/ip/address.ts";
import { POOL as LOADED } from "../api/scale-load.ts";

/** One way to take an address, as seen by its workers. */
export interface Contender {
  /**
   * Takes one address for an identity of this name. Resolves with how often it had to begin again; with undefined when
   * `signal` aborted while it waited for others. Throws when it is refused.
   */
  take(name: string, signal: AbortSignal): Promise<number | undefined>;
  /** Gives back what was taken, off the clock. */
  clear(): Promise<void>;
}

export const CONTENDERS = ["bare", "watched", "berth", "one object", "lease", "quick lease"] as const;
export type ContenderName = (typeof CONTENDERS)[number];

/** Where everybody takes from. */
export const { name: POOL, cidr: POOL_CIDR } = LOADED;
export const NAMESPACE = "bench";
const BASE = parseCidr(POOL_CIDR)?.base ?? 0n;

/** The n-th address of the pool that may be used, as text. */
export function addressAt(n: number): Address {
  return fromNumber(BASE + BigInt(n + 1), "IPv4");
}
