// SPDX-License-Identifier: Apache-2.0

import type { Refusal } from "../../../allocator/base/errors.ts";
import type { Labels } from "../../../allocator/base/ports.ts";
import { networkAttachments } from "../../../allocator/manifest/network-attachments.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import { addressesOn } from "../../../allocator/model/interfaces.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import {
  isOnNetwork,
  namesAttachments,
  namesAttachmentsAlone,
  otherNetwork,
} from "../../../allocator/pool/pool-networks.ts";
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
 *
 * Of two pools over each other of which nothing says which one an address is of, it is not the one that is for none of the pod's networks.
 */
export function claimOnNetwork(
  view: PoolsOfAddresses,
  claim: Claim,
  request: NetworkPlace,
  annotations: Labels | undefined,
): "serves" | "elsewhere" | "unknown" | Refusal {
  const names = networkNames(request, annotations ?? {});
  const named = addressesOn(claim, request.attachment.interface);
  const ofEach = (named ?? claim.addresses).map((address) => poolsFor(view, claim, address));
  const pools = ofEach.flat();
  const others = pools.filter((pool) => !isOnNetwork(pool, names));
  const [first] = others;
  if (first === undefined) return "serves";
  if (annotations === undefined && others.some(namesAttachments)) return "unknown";
  const isHere = ofEach.every((some) => some.some((pool) => isOnNetwork(pool, names)));
  const further = networkAttachments(annotations ?? {}, request.pod.namespace)
    .filter((one) => one.interface !== request.attachment.interface)
    .map(({ network }) => network);
  const isElsewhere = (pool: Pool) => further.length > 0 && mayBeOn(pool, further);
  if (isHere && (named !== undefined || (annotations !== undefined && !others.some(isElsewhere))))
    return "serves";
  if (named !== undefined) return otherNetwork(first, names, request.pod.namespace);
  if (further.length > 0 && pools.every((pool) => isOnNetwork(pool, further))) return "elsewhere";
  return otherNetwork(first, names, request.pod.namespace);
}

/** A pool may name a network by its configuration, which annotations do not tell. */
function mayBeOn(pool: Pool, attachments: readonly string[]): boolean {
  return isOnNetwork(pool, attachments) || !namesAttachmentsAlone(pool);
}
