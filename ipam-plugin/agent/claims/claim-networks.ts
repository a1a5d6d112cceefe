// SPDX-License-Identifier: Apache-2.0

import type { Refusal } from "../../../allocator/base/errors.ts";
import type { Labels } from "../../../allocator/base/ports.ts";
import { networkAttachments } from "../../../allocator/manifest/network-attachments.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import { addressesOn } from "../../../allocator/model/interfaces.ts";
import { isOnNetwork, namesAttachments, otherNetwork } from "../../../allocator/pool/pool-networks.ts";
import type { AttachmentKey, PodRef } from "./claim-source.ts";
import { type PoolsOfAddresses, poolsFor } from "./pool-for-address.ts";

interface NetworkPlace {
  readonly pod: Pick<PodRef, "namespace">;
  readonly attachment: Pick<AttachmentKey, "network" | "interface">;
}

/** Names of the network that an interface is attached to, by its configuration and by its pod's annotations. */
export function networkNames({ pod, attachment }: NetworkPlace, annotations: Labels): readonly string[] {
  const own = networkAttachments(annotations, pod.namespace).filter(
    (one) => one.interface === attachment.interface,
  );
  return [attachment.network, ...own.map(({ network }) => network)];
}

/**
 * Whether the interface that is being attached gets the claim's addresses, by the networks that their pools are for. Where the claim names
 * the interface, the others' addresses are no matter.
 *
 * | serves    | each of the pools is for this network                                        |
 * | elsewhere | they are for the network of another interface of the pod, which will ask    |
 * | unknown   | the pod's annotations may say so, and are not known                          |
 * | refusal   | they are for none of the pod's networks: it must not start with other addresses |
 */
export function claimOnNetwork(
  view: PoolsOfAddresses,
  claim: Claim,
  request: NetworkPlace,
  annotations: Labels | undefined,
): "serves" | "elsewhere" | "unknown" | Refusal {
  const names = networkNames(request, annotations ?? {});
  const named = addressesOn(claim, request.attachment.interface);
  const pools = (named ?? claim.addresses).flatMap((address) => poolsFor(view, claim, address));
  const others = pools.filter((pool) => !isOnNetwork(pool, names));
  const [first] = others;
  if (first === undefined) return "serves";
  if (annotations === undefined && others.some(namesAttachments)) return "unknown";
  if (named !== undefined) return otherNetwork(first, names, request.pod.namespace);
  const further = networkAttachments(annotations ?? {}, request.pod.namespace)
    .filter((one) => one.interface !== request.attachment.interface)
    .map(({ network }) => network);
  if (further.length > 0 && pools.every((pool) => isOnNetwork(pool, further))) return "elsewhere";
  return otherNetwork(first, names, request.pod.namespace);
}
