// SPDX-License-Identifier: Apache-2.0
// Addresses that a pod can never have, or that nobody could reach it by.

import type { Refusal } from "../base/errors.ts";
import { invalidPool } from "../base/validation.ts";
import { type Family, parseCidr } from "../ip/address.ts";
import { formatInterval, fullInterval, type Interval, intersection, without } from "../ip/ip-range.ts";
import type { AddressSpace } from "./address-space.ts";

/** An API server refuses the link-local ones in the endpoints of a Service, too. 240.0.0.0/4 is used for pods. */
const SPECIAL: readonly (readonly [cidr: string, name: string])[] = [
  ["0.0.0.0/32", "unspecified"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local"],
  ["224.0.0.0/4", "multicast"],
  ["255.255.255.255/32", "limited broadcast"],
  ["::/128", "unspecified"],
  ["::1/128", "loopback"],
  ["fe80::/10", "link-local"],
  ["ff00::/8", "multicast"],
];

const NETWORKS = SPECIAL.flatMap(([text, name]) => {
  const cidr = parseCidr(text);
  return cidr === undefined ? [] : [{ family: cidr.family, interval: fullInterval(cidr), name }];
});

/** The refusal of a range that would give such addresses; what it excludes it does not give. */
export function givesSpecialAddresses({ ranges }: Pick<AddressSpace, "ranges">): Refusal | undefined {
  for (const [i, { family, first, last, excluded }] of ranges.entries()) {
    const found = specialIn(family, without([{ first, last }], excluded));
    if (found === undefined) continue;
    const words = `${formatInterval({ family, interval: found.interval })} (${found.name})`;
    return invalidPool(`spec.ranges[${i}]`, `has addresses that no pod can have: ${words}; take them out`);
  }
  return undefined;
}

function specialIn(family: Family, given: readonly Interval[]) {
  for (const network of NETWORKS) {
    if (network.family !== family) continue;
    const shared = given.flatMap((one) => intersection(one, network.interval) ?? [])[0];
    if (shared !== undefined) return { interval: shared, name: network.name };
  }
  return undefined;
}
