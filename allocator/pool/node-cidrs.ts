// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../base/errors.ts";
import { invalidPool } from "../base/validation.ts";
import { FAMILIES, type Family } from "../ip/address.ts";
import type { AddressSpace } from "./address-space.ts";
import { nodeCidrLength } from "./blocks.ts";
import type { LabelSelector } from "./label-selector.ts";
import type { NodeCidrUse, PoolSpec } from "./pool-spec.ts";

/** What says who may have an address, or how a pod reaches others: a CIDR of a node is given to no pod. */
const FOR_PODS = [
  ...(["blockSize", "default", "namespaceSelector", "podSelector", "networks"] as const),
  ...(["limits", "authorization", "routes", "dns"] as const),
];

/** What is wrong with a pool that is for CIDRs of nodes; undefined: nothing, or it is not for them. */
export function checkNodeCidrs(spec: PoolSpec, space: AddressSpace): Refusal | undefined {
  const cilium = checkCilium(spec);
  if (cilium !== undefined || spec.nodeCIDRs === undefined) return cilium;
  const strange = FOR_PODS.find((field) => spec[field] !== undefined && spec[field] !== false);
  if (strange !== undefined) {
    const words =
      "is for pods, and a pool with nodeCIDRs gives pods no address; drop it, or make another pool for pods";
    return invalidPool(`spec.${strange}`, words);
  }
  if (FAMILIES.every((family) => nodeCidrLength({ spec }, family) === undefined)) {
    const words = `is empty; give the prefix length of a node's CIDR, such as ${EXAMPLES[space.families[0] ?? "IPv4"]}`;
    return invalidPool("spec.nodeCIDRs.blockSize", words);
  }
  return FAMILIES.map((family) => checkLength(family, spec, space)).find((one) => one !== undefined);
}

function checkCilium({ cilium, nodeCIDRs }: PoolSpec): Refusal | undefined {
  if (cilium === undefined) return undefined;
  if (nodeCIDRs?.use !== "Cilium")
    return invalidPool("spec.cilium", "is for pools with nodeCIDRs of use Cilium; drop it");
  const { growBelow, shrinkAbove } = cilium;
  if (growBelow === undefined || shrinkAbove === undefined || shrinkAbove >= growBelow) return undefined;
  const words = `${shrinkAbove} is below growBelow, so that what goes back would come again at once; give ${growBelow} or more`;
  return invalidPool("spec.cilium.shrinkAbove", words);
}

const EXAMPLES = { IPv4: "ipv4: 24", IPv6: "ipv6: 64" };

function checkLength(family: Family, spec: PoolSpec, space: AddressSpace): Refusal | undefined {
  const length = nodeCidrLength({ spec }, family);
  const field = `spec.nodeCIDRs.blockSize.${family === "IPv4" ? "ipv4" : "ipv6"}`;
  const ranges = space.ranges.filter((range) => range.family === family);
  if (length === undefined) {
    const [unused] = ranges;
    if (unused === undefined) return undefined;
    return invalidPool(
      field,
      `is not given and the pool has ${unused.cidr.text}; give it, or drop that range`,
    );
  }
  if (ranges.length === 0) return invalidPool(field, `is given and the pool has no ${family} range; drop it`);
  const small = ranges.find(({ prefixLength }) => prefixLength > length);
  if (small === undefined) return undefined;
  const words = `${length} makes CIDRs larger than ${small.cidr.text}; give ${small.prefixLength} or more`;
  return invalidPool(field, words);
}

/** Whether pods may have addresses of the pool: those of nodes' CIDRs are for a node's own network to give. */
export function servesPods({ spec }: { readonly spec: PoolSpec }): boolean {
  return spec.nodeCIDRs === undefined;
}

/** The words for whoever wants an address of such a pool for a pod. `use` in its details says that it is this refusal. */
export function forNodes(
  { name: pool, spec }: { readonly name: string; readonly spec: PoolSpec },
  namespace: string,
): Refusal {
  const use = spec.nodeCIDRs?.use ?? "";
  const next =
    use === "Cilium"
      ? "Cilium's agents pick the address of each pod out of it, and nothing can fix one there; name a pool without nodeCIDRs, for an interface that Berth serves (docs/networks.md)"
      : "name another pool";
  const words = `pool "${pool}" is for CIDRs of nodes (its nodeCIDRs) and gives pods no address; ${next}`;
  return refuse("POOL_FORBIDDEN", words, { pool, namespace, use });
}

/** The order in which a node is given of several that select it: those that ask for most, then by priority, then by name. */
export function bySpecificity<
  P extends { readonly name: string; readonly priority: number; readonly spec: PoolSpec },
>(pools: Iterable<P>, use: NodeCidrUse): readonly P[] {
  return [...pools]
    .filter(({ spec }) => spec.nodeCIDRs?.use === use)
    .sort(
      (a, b) =>
        termsOf(b.spec.nodeSelector) - termsOf(a.spec.nodeSelector) ||
        b.priority - a.priority ||
        (a.name < b.name ? -1 : 1),
    );
}

function termsOf(selector: LabelSelector | undefined): number {
  return Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions?.length ?? 0);
}
