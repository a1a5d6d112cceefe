// SPDX-License-Identifier: Apache-2.0

import type { Address } from "../../allocator/ip/address.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { type Claim, type ClaimAttachment, claimKey } from "../../allocator/model/claim.ts";
import { isLink, LINK_PREFIX } from "../../allocator/model/interface-macs.ts";
import { addressesOn, FIRST_INTERFACE, namesOf, placesOf } from "../../allocator/model/interfaces.ts";
import type { Attachment } from "../../ipam-plugin/agent/journal/attachment.ts";

type Told =
  | "scope"
  | "containerID"
  | "interface"
  | "source"
  | "netns"
  | "pod"
  | "claim"
  | "pool"
  | "attachedAt";

/**
 * A live use of addresses: an attachment as the journal of this host has it, or what its claim reports of it in a
 * cluster, where the journals are on the nodes. A claim does not tell network and netns: they are empty.
 */
export interface AttachmentUse extends Pick<Attachment, Told> {
  readonly result: { readonly addresses: readonly { readonly address: Address }[] };
  /** Absent: this host. */
  readonly node?: string;
}

/** What the claims report of the sandboxes that have them and were not seen to end. */
export function usesOf(claims: Iterable<Claim>): readonly AttachmentUse[] {
  const uses: AttachmentUse[] = [];
  for (const claim of claims) {
    const { attachment } = claim.status;
    if (attachment === undefined || attachment.detached) continue;
    const addresses = reportedOn(claim, attachment.interface);
    if (addresses.length > 0) uses.push(useOf(claim, attachment, addresses));
  }
  return uses;
}

/** The addresses of the one interface that the sandbox was reported with, and its MAC address. */
function reportedOn(claim: Claim, name: string): readonly Address[] {
  const own = addressesOn(claim, name);
  return own === undefined
    ? claim.addresses
    : [...own, ...(addressesOn(claim, `${LINK_PREFIX}${name}`) ?? [])];
}

/** The one interface that is told of: by the claim's status, or by the kubelet. */
export function reportedInterface({ binding, status: { attachment } }: Claim): string {
  const isReported = attachment?.detached === false && attachment.podUID === binding?.podUID;
  return isReported ? attachment.interface : FIRST_INTERFACE;
}

/** Interfaces of which the claim of a pod on a node has addresses, and nobody tells whether the pod has them. */
export function unreportedInterfaces(claim: Claim): readonly string[] {
  if (isDetached(claim)) return [];
  const names = namesOf(placesOf(claim) ?? {});
  return names.filter((name) => !isLink(name) && name !== reportedInterface(claim));
}

function useOf(
  claim: Claim,
  { node, containerID, interface: name, since }: ClaimAttachment,
  addresses: readonly Address[],
): AttachmentUse {
  return {
    scope: { network: "", dataDir: "" },
    containerID,
    interface: name,
    source: "claim",
    netns: "",
    ...podOf(claim),
    claim: claimKey(claim),
    attachedAt: since,
    result: { addresses: addresses.map((address) => ({ address })) },
    node,
  };
}

/** A claim knows the name of the pod that it is bound to, and of an earlier one the UID alone. */
function podOf({ namespace, binding, status }: Claim): Pick<AttachmentUse, "pod"> {
  const uid = status.attachment?.podUID ?? "";
  if (binding === undefined || (uid !== "" && binding.podUID !== uid)) return {};
  return { pod: { namespace, name: binding.podName, uid } };
}
