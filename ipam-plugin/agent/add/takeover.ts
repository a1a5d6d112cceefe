// SPDX-License-Identifier: Apache-2.0

import type { PodRef } from "../claims/claim-source.ts";
import type { Attachment, AttachmentId } from "../journal/attachment.ts";

/** What becomes of another attachment that uses the claim which a new sandbox was just given. */
type Takeover = "supersede" | "beside" | "wait" | "refuse" | "late";

/**
 * | the other attachment                               |           |
 * |----------------------------------------------------|-----------|
 * | another interface of the same container            | refuse    | both would be up with one address
 * | the same, and the claim names both interfaces       | beside    | each has addresses of its own
 * | the same interface of it, under another network    | supersede | it is the same link
 * | another sandbox of the same pod                    | supersede | the kubelet has stopped it before it asks again
 * | a newer sandbox of the same pod                    | late      | this one's ADD has outlived it
 * | another pod, its sandbox may be up, or cannot be seen | wait   | for its DEL, which is on its way or never comes
 * | another pod, its sandbox is gone                   | supersede | its DEL is late or lost
 */
export function judgeTakeover(
  other: Attachment,
  next: AttachmentId & { readonly pod: PodRef; readonly startNs: bigint },
  otherMayBeUp: boolean,
  named: readonly string[] = [],
): Takeover {
  if (other.containerID === next.containerID) {
    if (other.interface === next.interface) return "supersede";
    return named.includes(other.interface) && named.includes(next.interface) ? "beside" : "refuse";
  }
  // A runtime that does not say the UID (or says none) leaves it to the sandbox.
  if (next.pod.uid !== "" && other.pod?.uid === next.pod.uid)
    return other.startNs > next.startNs ? "late" : "supersede";
  return otherMayBeUp ? "wait" : "supersede";
}
