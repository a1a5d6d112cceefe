// SPDX-License-Identifier: Apache-2.0
import type { Family } from "../ip/address.ts";
import { type AddressSpace, capacity } from "./address-space.ts";

/** What a pool's addresses of one family are used for. */
interface FamilyUsage {
  readonly reserved: number;
  /** Freed a moment ago, and not given out again yet. */
  readonly cooling: number;
  /** Of those reserved, for claims that are bound to a pod on a node. */
  readonly bound: number;
  /** Addresses that owners of blocks have for themselves, used or not, or that cool with their block. */
  readonly inBlocks?: number;
}

export type UsageByFamily = Readonly<Record<Family, FamilyUsage>>;

/** With how many there are and are left; these are text: a /64 has more than JSON can count. */
export interface FamilyFigures extends Omit<FamilyUsage, "inBlocks"> {
  readonly capacity: string;
  /** For fixed addresses, and for blocks that no node has yet. */
  readonly free: string;
}

/** As a pool's status has them. */
interface PoolFigures {
  readonly ipv4?: FamilyFigures;
  readonly ipv6?: FamilyFigures;
}

/** The families apart: a pod needs one address of each, so that a sum would say nothing of whether it can get them. */
export function figuresOf(space: AddressSpace, usage: UsageByFamily): PoolFigures {
  return Object.fromEntries(
    space.families.map((family) => {
      const all = capacity(space, family);
      const { reserved, cooling, bound, inBlocks = 0 } = usage[family];
      const left = all - BigInt(reserved + cooling + inBlocks);
      const free = String(left < 0n ? 0n : left);
      return [family.toLowerCase(), { capacity: String(all), reserved, cooling, bound, free }];
    }),
  );
}

/** To be counted up. */
export function unused(): Record<
  Family,
  { reserved: number; cooling: number; bound: number; inBlocks?: number }
> {
  const nothing = { reserved: 0, cooling: 0, bound: 0 };
  return { IPv4: { ...nothing }, IPv6: { ...nothing } };
}
