// SPDX-License-Identifier: Apache-2.0
import { fromThrown } from "../../cni/errors.ts";
import { attachmentIdOf } from "../add/add-request.ts";
import {
  type Attachment,
  type AttachmentId,
  attachmentKey,
  detached,
  keyOf,
  tombstoneFor,
} from "../journal/attachment.ts";
import type { Answer } from "../rpc/connection.ts";
import { errorVersion, notAccepted, succeed } from "../rpc/reply.ts";
import type { AgentServices, CniRequest } from "../services/services.ts";

/**
 * Lets go of one interface of one container and succeeds, whatever else the call says: neither version nor ranges
 * nor CNI_ARGS, and least of all prevResult, have a say in it (SPEC section 4, "DEL"). Safe to repeat.
 */
export async function del(request: CniRequest, services: AgentServices): Promise<Answer> {
  const place = attachmentIdOf(request);
  const { startNs } = request.call;
  const { attachments, locks, inFlight, detachReporter, clock, bootId, log } = services;
  inFlight.abortBefore(attachmentKey(place), startNs);
  let hasNews = false;
  try {
    await locks.run(attachmentKey(place), async () => {
      const known = attachments.get(place);
      // It was meant for an earlier sandbox of that name, and waited somewhere until this one was attached.
      if (known?.state === "attached" && known.startNs > startNs) return;
      const at = { now: clock.now(), deadlineNs: startNs, bootId };
      const end = known === undefined ? unknownEnd(place, at, services) : detached(known, at);
      await attachments.commit({ put: [end] });
      hasNews = end.noticePending;
    });
  } catch (error) {
    // Not worded by us alone: some runtimes take "not found" in a failed DEL for success. The spool keeps it anyway.
    log.error("detachment was not journalled", { containerID: place.containerID, error });
    return notAccepted(errorVersion(request.config.fields), fromThrown(error));
  }
  if (hasNews) detachReporter.wake();
  return succeed();
}

/** Of a container that this agent never attached: whoever had the address before it was here may have to be told. */
function unknownEnd(
  place: AttachmentId,
  at: Parameters<typeof tombstoneFor>[1],
  { sharedNetworks }: Pick<AgentServices, "sharedNetworks">,
): Attachment {
  const tombstone = tombstoneFor(place, at);
  const notice = sharedNetworks?.formerNotice(keyOf(place));
  if (notice === undefined) return tombstone;
  const { claim, pod } = notice;
  return { ...tombstone, claim, pod, noticePending: true };
}
