// SPDX-License-Identifier: Apache-2.0

import type { Cidr } from "../../../allocator/ip/address.ts";
import type { CiliumMode, CiliumNode } from "./cilium-node.ts";
import { type CiliumPlan, listing, type Situation } from "./plan.ts";
import { planClusterPoolNode } from "./plan-cluster-pool.ts";
import { planCrdNode } from "./plan-crd.ts";
import { planMultiPoolNode } from "./plan-multi-pool.ts";

// What is different from mode to mode of Cilium's IPAM.

export const PLANS: Readonly<Record<CiliumMode, (situation: Situation) => CiliumPlan>> = {
  crd: planCrdNode,
  "cluster-pool": planClusterPoolNode,
  "multi-pool": planMultiPoolNode,
};

/** An agent tells what is used once in 15 s, and writes its list of CIDRs anew once in 60 s: after that it would have said otherwise. */
export const QUIET_MS: Readonly<Record<CiliumMode, number>> = {
  crd: 20_000,
  "cluster-pool": 20_000,
  "multi-pool": 75_000,
};

/** Whether the object shows that something of a block is used: then it is not quiet. */
export function usedBy(mode: CiliumMode, node: CiliumNode) {
  if (mode === "crd") return listing([...node.used].map((one) => `${one}/${one.includes(":") ? 128 : 32}`));
  if (mode === "cluster-pool") return ({ text }: Cidr) => node.cidrStates.get(text) !== "released";
  return listing(node.allocated.flatMap(({ cidrs }) => cidrs));
}
