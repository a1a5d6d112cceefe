// SPDX-License-Identifier: Apache-2.0
import type { Source } from "../journal/attachment.ts";
import type { AttachmentCache } from "../journal/attachment-cache.ts";
import type { AddRequest } from "./add-request.ts";

const WITHOUT_CLAIM: ReadonlySet<Source> = new Set(["block", "ranges", "static"]);

/**
 * Whether the pod has had an address of a block or of the configuration itself at this interface, in an earlier sandbox: it goes on so as
 * long as it lives. A claim of its name that somebody made meanwhile, or that was bound too late, is for the next pod.
 */
export function wasServedWithoutClaim(
  { args: { pod }, scope, interface: name }: AddRequest,
  attachments: Pick<AttachmentCache, "ofPod">,
): boolean {
  if (pod === undefined || pod.uid === "") return false;
  return attachments
    .ofPod(pod.uid)
    .some(
      (known) =>
        WITHOUT_CLAIM.has(known.source) &&
        known.interface === name &&
        known.scope.network === scope.network &&
        known.scope.dataDir === scope.dataDir,
    );
}
