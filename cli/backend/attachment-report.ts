// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/ip/address.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
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
    const { node, containerID, interface: name, since } = attachment;
    uses.push({
      scope: { network: "", dataDir: "" },
      containerID,
      interface: name,
      source: "claim",
      netns: "",
      ...podOf(claim),
      claim: claimKey(claim),
      attachedAt: since,
      result: { addresses: claim.addresses.map((address) => ({ address })) },
      node,
    });
  }
  return uses;
}

/** A claim knows the name of the pod that it is bound to, and of an earlier one the UID alone. */
function podOf({ namespace, binding, status }: Claim): Pick<AttachmentUse, "pod"> {
  const uid = status.attachment?.podUID ?? "";
  if (binding === undefined || (uid !== "" && binding.podUID !== uid)) return {};
  return { pod: { namespace, name: binding.podName, uid } };
}
