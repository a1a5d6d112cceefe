// SPDX-License-Identifier: Apache-2.0
// Cilium's keys of pools: that of a family counts before the one of both.

import { FAMILIES, type Family } from "../ip/address.ts";
import { type DialectReader, readName, readNameOf } from "./dialect-values.ts";

const FAMILY_POOLS: Readonly<Record<Family, string>> = {
  IPv4: "ipam.cilium.io/ipv4-pool",
  IPv6: "ipam.cilium.io/ipv6-pool",
};

/** Any address of the pool, or one of the family for which no other is named beside it. */
export const readCiliumPool: DialectReader = (value, key, annotations) => {
  const left = FAMILIES.filter((family) => !annotations[FAMILY_POOLS[family]]);
  const [family] = left;
  if (family === undefined) return {};
  return (left.length === 2 ? readName : readNameOf(family))(value, key, annotations);
};
