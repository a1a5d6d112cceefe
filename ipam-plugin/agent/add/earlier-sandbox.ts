// SPDX-License-Identifier: Apache-2.0
import type { AttachmentCache } from "../journal/attachment-cache.ts";
import type { AddRequest } from "./add-request.ts";

/**
 * Whether the pod has had an address of the configuration itself at this interface, in an earlier sandbox: it goes on so as
 * long as it lives. A claim of its name that somebody made meanwhile, or that was bound too late, is for the next pod.
 */
export function wasServedWithoutClaim(
  { args: { pod }, scope, interface: name }: AddRequest,
  attachments: Pick<AttachmentCache, "all">,
): boolean {
  if (pod === undefined || pod.uid === "") return false;
  for (const known of attachments.all()) {
    const isIts = known.pod?.uid === pod.uid && known.interface === name;
    if (!isIts || known.scope.network !== scope.network || known.scope.dataDir !== scope.dataDir) continue;
    if (known.source === "ranges" || known.source === "static") return true;
  }
  return false;
}
