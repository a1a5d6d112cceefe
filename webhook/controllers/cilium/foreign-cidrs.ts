// SPDX-License-Identifier: Apache-2.0

import { listed } from "../../../allocator/base/listed.ts";
import { parseCidr } from "../../../allocator/ip/address.ts";
import { fullInterval, intersection } from "../../../allocator/ip/ip-range.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { CiliumMode, CiliumNode } from "./cilium-node.ts";
import { ciliumPoolOf } from "./situation.ts";

/** CIDRs that a message names. */
const NAMED = 3;

/** What a CiliumNode has, where Berth is to give it, and is of no pool: another operator is at it, or was. Undefined: nothing. */
export function foreignWords(mode: CiliumMode, pools: readonly Pool[], node: CiliumNode): string | undefined {
  const named = new Set(pools.map(ciliumPoolOf));
  const given =
    mode === "multi-pool"
      ? node.allocated.filter(({ pool }) => named.has(pool)).flatMap(({ cidrs }) => cidrs)
      : node.podCIDRs;
  const foreign = given.filter((text) => !isOfPools(pools, text));
  if (foreign.length === 0) return undefined;
  return `${listed(foreign, NAMED)} in its CiliumNode is of no IPPool for Cilium: Cilium's operator, or somebody else, gives CIDRs too, and Berth cannot keep those from other nodes; end that operator, or make an IPPool that has them (docs/cilium.md)`;
}

/** What shares addresses with one is recorded, or told of, where it is taken over. */
function isOfPools(pools: readonly Pool[], text: string): boolean {
  const cidr = parseCidr(text);
  if (cidr === undefined) return true;
  const interval = fullInterval(cidr);
  return pools.some(({ ranges }) =>
    ranges.some((range) => range.family === cidr.family && intersection(range, interval) !== undefined),
  );
}
