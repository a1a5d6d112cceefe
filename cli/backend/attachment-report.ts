// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/ip/address.ts";
import { type Claim, type ClaimAttachment, claimKey } from "../../allocator/model/claim.ts";
import { addressesOn, namesOf } from "../../allocator/model/interfaces.ts";
import type { Attachment } from "../../ipam-plugin/agent/journal/attachment.ts";

type Told = "scope" | "containerID" | "interface" | "source" | "netns" | "pod" | "claim" | "attachedAt";

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
    for (const [name, addresses] of perInterface(claim, attachment.interface))
      uses.push(useOf(claim, attachment, name, addresses));
  }
  return uses;
}

/** A claim tells of its sandbox, whose interfaces it names itself if it is for several. */
function perInterface(claim: Claim, told: string): readonly (readonly [string, readonly Address[]])[] {
  const { interfaces } = claim.request;
  if (interfaces === undefined) return [[told, claim.addresses]];
  return namesOf(interfaces).map((name) => [name, addressesOn(claim, name) ?? []] as const);
}

function useOf(
  claim: Claim,
  { node, containerID, since }: ClaimAttachment,
  name: string,
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
