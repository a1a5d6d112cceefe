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
 * one for every network it finds, podman's included), so a sandbox that can be seen is kept, also one that could not be seen at ADD. One
 * whose namespace a process named is let go when that process is gone and, by all processes and mounts of the host, nobody else has the namespace.
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
  let looking: ReturnType<typeof host.namespacesInUse> | undefined; // once for all of them, and only where one needs it
  const inUse = () => {
    looking ??= host.namespacesInUse();
    return looking;
  };
  const stale = await Promise.all(unlisted.map((attachment) => isStale(attachment, host, inUse)));
  return unlisted.filter((_, i) => stale[i]);
}

async function isStale(
  attachment: Attachment,
  host: AgentServices["host"],
  inUse: () => Promise<ReadonlySet<string> | undefined>,
): Promise<boolean> {
  const { netns, netnsSeen } = attachment;
  const seen = await lookForNetns(attachment, host);
  if (seen !== "unknown") return seen === "gone";
  if (typeof netnsSeen !== "string" || !host.hasProcessEnded(netns)) return netnsSeen === false;
  return (await inUse())?.has(netnsSeen) === false;
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
