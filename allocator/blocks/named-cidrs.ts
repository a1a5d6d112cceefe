// SPDX-License-Identifier: Apache-2.0

import { parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { fullInterval, intersection } from "../ip/ip-range.ts";

/** A Node, by what its spec says. */
interface Naming {
  readonly podCIDRs: readonly string[];
}

/** What Nodes say that they have, whoever gave it to them. */
export class NamedCidrs {
  readonly #byFamily = { IPv4: new IntervalSet(), IPv6: new IntervalSet() };

  constructor(nodes: readonly Naming[]) {
    for (const text of nodes.flatMap(({ podCIDRs }) => podCIDRs)) {
      const cidr = parseCidr(text);
      if (cidr !== undefined) this.#byFamily[cidr.family].addInterval(fullInterval(cidr));
    }
  }

  touches(text: string): boolean {
    const cidr = parseCidr(text);
    if (cidr === undefined) return false;
    const { first, last } = fullInterval(cidr);
    return this.#byFamily[cidr.family].nextTaken(first, last) !== undefined;
  }
}

/** The Node says that it has CIDRs, and none of them has an address of this one. */
export function namesOthers({ podCIDRs }: Naming, text: string): boolean {
  const own = parseCidr(text);
  if (podCIDRs.length === 0 || own === undefined) return false;
  return podCIDRs.every((one) => {
    const named = parseCidr(one);
    return named?.family !== own.family || intersection(fullInterval(named), fullInterval(own)) === undefined;
  });
}
