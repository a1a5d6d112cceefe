// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../../allocator/base/counted.ts";
import type { CidrShortage, ExhaustedPool } from "../../../allocator/blocks/node-cidr-plan.ts";
import type { CidrCollision } from "../../../allocator/blocks/node-cidr-take-over.ts";

/** Pools that a message names. */
const NAMED = 3;

/** Why a Node has no CIDR, for whoever describes it. */
export function shortageWords({ family, pools }: CidrShortage): string {
  if (pools.length === 0)
    return `no pool with nodeCIDRs for PodCIDR selects this node and has ${family} ranges; create an IPPool, or change a nodeSelector`;
  const some = pools.slice(0, NAMED).map(poolWords);
  const more = pools.length > NAMED ? `; and ${pools.length - NAMED} more` : "";
  return `no ${family} CIDR is free for this node: ${some.join("; ")}${more}; add a range to a pool, or delete nodes that are gone`;
}

function poolWords({ pool, length, total, reason, other, owners }: ExhaustedPool): string {
  if (reason === "disabled") return `pool "${pool}" is disabled`;
  if (reason === "overlaps") return `pool "${pool}" shares addresses with pool "${other ?? ""}"`;
  const have = owners.map(({ node, blocks }) => `${node} ${blocks}`).join(", ");
  const size = counted(Number(total), `CIDR of /${length}`, `CIDRs of /${length}`);
  return `pool "${pool}" has ${size}${have === "" ? ", none of which is free" : `, of which nodes have ${have}`}`;
}

/** Why a Node's own CIDR is not recorded as its. */
export function collisionWords({ cidr, pool, with: conflict }: CidrCollision): string {
  if (conflict === undefined)
    return `its podCIDR ${cidr} is so large that it takes most of pool "${pool}"; create the node again, or take that range out of the pool`;
  if (conflict.isCooling)
    return `its podCIDR ${cidr} is being given back by node "${conflict.node}" (${conflict.cidr} of pool "${pool}"); it is recorded as this node's after that`;
  return `its podCIDR ${cidr} shares addresses with ${conflict.cidr} of pool "${pool}", which node "${conflict.node}" has; delete one of the two nodes and let it join again`;
}
