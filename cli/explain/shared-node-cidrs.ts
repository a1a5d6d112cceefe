// SPDX-License-Identifier: Apache-2.0
// CIDRs that two Nodes have, by what they say themselves and by Berth's records.

import type { Finding } from "../../allocator/gc/finding.ts";
import { pending } from "../../allocator/gc/finding.ts";
import { type Cidr, parseCidr } from "../../allocator/ip/address.ts";
import { fullInterval } from "../../allocator/ip/ip-range.ts";
import type { Block } from "../../allocator/model/block.ts";
import type { Objects } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";

interface Held {
  readonly node: string;
  readonly cidr: Cidr;
  /** By whose word. */
  readonly by: "its spec" | "Berth's record";
}

/** One finding for each pair that shares. Undefined: this user may not list Nodes. */
export async function sharedNodeCidrs(
  blocks: readonly Block[],
  world: Pick<Objects, "each">,
): Promise<readonly Finding[] | undefined> {
  const recorded = blocks.filter(({ use, releasedAt }) => use === "PodCIDR" && releasedAt === undefined);
  if (recorded.length === 0) return [];
  const held: Held[] = recorded.flatMap(({ node, cidr }) => heldBy(node, cidr, "Berth's record"));
  return await ifAllowed(async () => {
    for await (const { metadata, spec } of world.each("Node"))
      for (const text of spec.list("podCIDRs")) held.push(...heldBy(metadata.name, String(text), "its spec"));
    return sharing(held);
  });
}

function heldBy(node: string, text: string, by: Held["by"]): Held[] {
  const cidr = parseCidr(text);
  return cidr === undefined ? [] : [{ node, cidr, by }];
}

/** In the order of their addresses: who shares some begins before the one ends that reaches furthest. */
function sharing(held: readonly Held[]): Finding[] {
  const sorted = held.toSorted((a, b) =>
    a.cidr.family === b.cidr.family
      ? Number(a.cidr.base > b.cidr.base) - Number(a.cidr.base < b.cidr.base)
      : a.cidr.family < b.cidr.family
        ? -1
        : 1,
  );
  const found = new Map<string, Finding>();
  let furthest: Held | undefined;
  for (const one of sorted) {
    const { first, last } = fullInterval(one.cidr);
    const isOver = furthest?.cidr.family === one.cidr.family && fullInterval(furthest.cidr).last >= first;
    if (furthest !== undefined && isOver && furthest.node !== one.node)
      found.set([furthest.node, one.node].sort().join(" "), findingOf(furthest, one));
    if (furthest === undefined || !isOver || last > fullInterval(furthest.cidr).last) furthest = one;
  }
  return [...found.values()];
}

function findingOf(a: Held, b: Held): Finding {
  const words = `node ${a.node} has ${a.cidr.text} by ${a.by}, and node ${b.node} has ${b.cidr.text} by ${b.by}: their pods may have one address; drain one of the two nodes, delete it and let it join again`;
  return pending("shared-cidr", a.cidr.text, words);
}
