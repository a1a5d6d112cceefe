// SPDX-License-Identifier: Apache-2.0
import { type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { placeOf } from "../claims/claim-place.ts";
import type { ClaimResult } from "../claims/claim-source.ts";
import { type Attachment, attachmentKey, nameOf, networkOf } from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";

/**
 * An address of the claim that something else on this node has: pool and host-local ranges of the network overlap,
 * or a sandbox of any network still has it from a claim that is not its pod's any more.
 */
export function findTaken(
  bound: ClaimResult,
  addRequest: AddRequest,
  { services, superseded }: { services: AgentServices; superseded: readonly Attachment[] },
): Refusal | undefined {
  const space = services.attachments.space(addRequest.scope);
  const ours = new Set(superseded.map(attachmentKey));
  for (const { address } of bound.addresses) {
    const others = services.attachments.placesOf(address).filter((id) => !isApart(id, bound, services));
    const holder = [space.holderOf(address), ...others].find((id) => id !== undefined && !ours.has(id));
    if (holder === undefined) continue;
    const words = `${address} is in use on this node: ${nameOf(holder)} has it in network ${networkOf(holder)}; delete that one, or keep pools and ipam.ranges apart`;
    return refuse("ADDRESS_TAKEN", words, { address });
  }
  return undefined;
}

/** Networks in different etcds are on different wires: an address is one only within an etcd. */
function isApart(id: string, { claim = "" }: ClaimResult, services: AgentServices): boolean {
  const other = services.attachments.at(id)?.claim;
  const [here, there] = [placeOf(claim).etcd, other === undefined ? undefined : placeOf(other).etcd];
  const inEtcds = services.sharedNetworks?.hasOwn === true || (here !== undefined && there !== undefined);
  return other !== undefined && inEtcds && here !== there;
}
