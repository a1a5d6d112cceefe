// SPDX-License-Identifier: Apache-2.0
import { messageOf } from "../../../allocator/base/errors.ts";
import { networkKeyOf, readValidAttachments, readVersion, type ValidAttachment } from "../../cni/config.ts";
import { cniError, isCniError } from "../../cni/errors.ts";
import { type Attachment, attachmentKey, detached, lookForNetns, scopeId } from "../journal/attachment.ts";
import type { Answer } from "../rpc/connection.ts";
import { errorVersion, fail, succeed } from "../rpc/reply.ts";
import type { AgentServices, CniRequest } from "../services/services.ts";

/**
 * Lets go of the attachments of this network, on this node, that the list does not have (SPEC section 4, "GC"). An
 * absent list frees nothing. Whoever else uses the network is unknown to the runtime that made the list (CRI-O has
 * one for every network it finds, podman's included), so a sandbox that can be seen is kept, also one that could not be seen at ADD.
 */
export async function gc(request: CniRequest, services: AgentServices): Promise<Answer> {
  const { config, call } = request;
  const version = readVersion(config, "GC");
  if (isCniError(version)) return fail(errorVersion(config.fields), version);
  const valid = readValidAttachments(config.fields);
  if (isCniError(valid)) return fail(version, valid);
  if (valid === undefined) return succeed("", "berth: GC without cni.dev/valid-attachments frees nothing\n");
  const stale = await findStale(request, services, valid);
  const results = await Promise.allSettled(
    stale.map((attachment) => release(attachment, services, call.startNs)),
  );
  services.detachReporter.wake();
  const failures = results.filter((result) => result.status === "rejected");
  const [first] = failures;
  if (first === undefined) return succeed();
  const words = `${failures.length} of ${stale.length} stale attachments were not freed: ${messageOf(first.reason)}`;
  return fail(version, cniError("IO_FAILURE", words));
}

async function findStale(
  { config, call }: CniRequest,
  { attachments, host }: AgentServices,
  valid: readonly ValidAttachment[],
): Promise<readonly Attachment[]> {
  const network = scopeId(networkKeyOf(config));
  const listed = new Set(valid.map(({ containerID, ifname }) => `${containerID}\0${ifname}`));
  const unlisted = attachments
    .attached()
    .filter(({ scope }) => scopeId(scope) === network)
    .filter(({ containerID, interface: name }) => !listed.has(`${containerID}\0${name}`))
    .filter(({ startNs }) => startNs < call.startNs); // attached since: the list cannot have it
  const alive = await Promise.all(
    unlisted.map(async (attachment) => {
      const seen = await lookForNetns(attachment, host);
      return seen === "present" || (attachment.netnsSeen !== false && seen !== "gone");
    }),
  );
  return unlisted.filter((_, i) => alive[i] === false);
}

async function release(
  attachment: Attachment,
  { attachments, locks, clock, log }: AgentServices,
  startNs: bigint,
): Promise<void> {
  await locks.run(attachmentKey(attachment), async () => {
    if (attachments.get(attachment) !== attachment) return;
    await attachments.commit({ put: [detached(attachment, { now: clock.now(), deadlineNs: startNs })] });
    log.info("stale attachment freed", {
      containerID: attachment.containerID,
      interface: attachment.interface,
      network: attachment.scope.network,
    });
  });
}
