// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/ip/address.ts";
import { type Claim, type ClaimAttachment, claimKey } from "../../allocator/model/claim.ts";
import { isLink, LINK_PREFIX } from "../../allocator/model/interface-macs.ts";
import { addressesOn, namesOf, placesOf } from "../../allocator/model/interfaces.ts";
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

/** Interfaces of which the claim of a live sandbox has addresses, and does not tell whether the pod has them: its status names one. */
export function unreportedInterfaces(claim: Claim): readonly string[] {
  const { attachment } = claim.status;
  if (attachment === undefined || attachment.detached) return [];
  const names = namesOf(placesOf(claim) ?? {});
  return names.filter((name) => !isLink(name) && name !== attachment.interface);
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
