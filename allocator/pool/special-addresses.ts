// SPDX-License-Identifier: Apache-2.0
// Addresses that a pod can never have, or that nobody could reach it by.

import type { Refusal } from "../base/errors.ts";
import { invalidPool } from "../base/validation.ts";
import { type Family, fromNumber, parseCidr } from "../ip/address.ts";
import {
  formatInterval,
  fullInterval,
  type Interval,
  intersection,
  type Range,
  without,
} from "../ip/ip-range.ts";
import { macOfAddress } from "../ip/mac.ts";
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
export function givesSpecialAddresses({
  ranges,
  reserved,
}: Pick<AddressSpace, "ranges" | "reserved">): Refusal | undefined {
  for (const [i, range] of ranges.entries()) {
    const { family, first, last, excluded } = range;
    const given = without([{ first, last }], excluded);
    const found = isOfMacs(range) ? undefined : specialIn(family, given);
    if (isOfMacs(range) && !isWithin(given, reserved, family)) {
      const words = "has MAC addresses, which pods have by request alone; write it into spec.reserved, too";
      return invalidPool(`spec.ranges[${i}]`, words);
    }
    if (found === undefined) continue;
    const words = `${formatInterval({ family, interval: found.interval })} (${found.name})`;
    return invalidPool(`spec.ranges[${i}]`, `has addresses that no pod can have: ${words}; take them out`);
  }
  return undefined;
}

/** Whether it has MAC addresses and nothing else. */
export function hasMacsAlone({ ranges }: Pick<AddressSpace, "ranges">): boolean {
  return ranges.length > 0 && ranges.every(isOfMacs);
}

/** Link-local addresses that MAC addresses of one maker make (ip/mac.ts). */
function isOfMacs({ cidr, family, first, last }: Range): boolean {
  const ends = [first, last].map((n) => macOfAddress(fromNumber(n, family)));
  return cidr.text === "fe80::/64" && ends.every((mac) => mac !== undefined) && first >> 24n === last >> 24n;
}

function isWithin(given: readonly Interval[], all: AddressSpace["reserved"], family: Family): boolean {
  return (
    without(
      given,
      all.filter((one) => one.family === family).map(({ interval }) => interval),
    ).length === 0
  );
}

function specialIn(family: Family, given: readonly Interval[]) {
  for (const network of NETWORKS) {
    if (network.family !== family) continue;
    const shared = given.flatMap((one) => intersection(one, network.interval) ?? [])[0];
    if (shared !== undefined) return { interval: shared, name: network.name };
  }
  return undefined;
}
