// SPDX-License-Identifier: Apache-2.0
import { addressOfMac } from "../../../allocator/ip/mac.ts";
import { classify, type Pool } from "../../../allocator/pool/pool.ts";
import type { RequestedMac } from "../claims/claim-source.ts";

/** What somebody says of the interface's MAC address, and which pool says who may have that one. */
export function requestedMac(mac: string, pools: Iterable<Pool>): RequestedMac {
  for (const pool of pools)
    if (["open", "reserved"].includes(classify(pool, addressOfMac(mac)))) return { mac, pool: pool.name };
  return { mac };
}
