// SPDX-License-Identifier: Apache-2.0
import { fromThrown } from "../cni/errors.ts";
import { placeOf } from "./ask.ts";
import { detached, neverAttached, placeId } from "./attachment.ts";
import type { Answer } from "./connection.ts";
import type { Parts, Request } from "./parts.ts";
import { errorVersion, notTaken, succeed } from "./reply.ts";

/**
 * Lets go of one interface of one container and succeeds, whatever else the call says: neither version nor ranges
 * nor CNI_ARGS, and least of all prevResult, have a say in it (SPEC section 4, "DEL"). Safe to repeat.
 */
export async function del(request: Request, parts: Parts): Promise<Answer> {
  const place = placeOf(request);
  const { startNs } = request.call;
  const { attachments, turns, inFlight, notices, clock, bootId, log } = parts;
  inFlight.abortBefore(placeId(place), startNs);
  try {
    await turns.run(placeId(place), async () => {
      const known = attachments.get(place);
      // It was meant for an earlier sandbox of that name, and waited somewhere until this one was attached.
      if (known?.state === "attached" && known.startNs > startNs) return;
      const at = { now: clock.now(), deadlineNs: startNs, bootId };
      await attachments.commit({
        put: [known === undefined ? neverAttached(place, at) : detached(known, at)],
      });
    });
  } catch (error) {
    // Not worded by us alone: some runtimes take "not found" in a failed DEL for success. The spool keeps it anyway.
    log.error("detachment was not journalled", { containerID: place.containerID, error });
    return notTaken(errorVersion(request.config.fields), fromThrown(error));
  }
  notices.kick();
  return succeed();
}
