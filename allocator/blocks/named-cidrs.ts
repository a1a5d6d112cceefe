// SPDX-License-Identifier: Apache-2.0

import { FAMILIES, parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { fullInterval, intersection } from "../ip/ip-range.ts";
import { cutSpace } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";
import { isTooLarge } from "./cidr-pieces.ts";
import type { NamedCidr } from "./node-cidr-plan.ts";

/** A Node, by what it says. */
interface Naming {
  readonly podCIDRs: readonly string[];
  readonly isAnnotated?: boolean;
}

/**
 * Without what only annotations say and is too large to be recorded: a kubelet may write those of its Node, and nobody else would get anything.
 */
export function believed<N extends Naming>(nodes: readonly N[], pools: readonly Pool[]): readonly N[] {
  const own = pools.filter(({ spec }) => spec.nodeCIDRs?.use === "PodCIDR");
  const spaces = own.flatMap((pool) => FAMILIES.flatMap((family) => cutSpace(pool, family) ?? []));
  const isLarge = (text: string) => {
    const cidr = parseCidr(text);
    return cidr !== undefined && spaces.some((space) => isTooLarge(space, cidr));
  };
  return nodes.map((node) =>
    node.isAnnotated === true ? { ...node, podCIDRs: node.podCIDRs.filter((text) => !isLarge(text)) } : node,
  );
}

export function namedBy({ name, podCIDRs }: Naming & { readonly name: string }): readonly NamedCidr[] {
  const cidrs = podCIDRs.flatMap((text) => parseCidr(text) ?? []);
  return cidrs.map((cidr) => ({ node: name, cidr }));
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
