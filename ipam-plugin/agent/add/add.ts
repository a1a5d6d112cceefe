// SPDX-License-Identifier: Apache-2.0
import { type CniError, isCniError } from "../../cni/errors.ts";
import { resultAnswer } from "../../cni/result.ts";
import { orAborted, within } from "../claims/deadline.ts";
import { type Attachment, attachmentKey, detached } from "../journal/attachment.ts";
import type { Answer } from "../rpc/connection.ts";
import { errorVersion, fail, succeed } from "../rpc/reply.ts";
import type { AgentServices, CniRequest } from "../services/services.ts";
import { type AddRequest, classifyAdd, readAddRequest } from "./add-request.ts";
import { assignAddresses } from "./address-source.ts";
import { cancelledError } from "./commit.ts";

/** Below the client's 30 s, so that the answer is ours. */
const LIMIT_MS = 25_000;

/** Gives addresses to one interface of one container: all or none, journalled before they are answered. */
export async function add(request: CniRequest, services: AgentServices): Promise<Answer> {
  const refused = (error: CniError) => fail(errorVersion(request.config.fields), error);
  const addRequest = await readAddRequest(request, services);
  if (isCniError(addRequest)) return refused(addRequest);
  const { startNs } = request.call;
  return services.inFlight.run(attachmentKey(addRequest), startNs, (deletion) =>
    within({ ms: LIMIT_MS, clock: services.clock, signals: [request.signal, deletion] }, (signal) =>
      services.locks.run(attachmentKey(addRequest), async () => {
        const attachment = await attach(addRequest, services, signal);
        return isCniError(attachment) ? refused(attachment) : answerWith(attachment, addRequest, services);
      }),
    ),
  );
}

async function attach(
  addRequest: AddRequest,
  services: AgentServices,
  signal: AbortSignal,
): Promise<Attachment | CniError> {
  const known = services.attachments.get(addRequest);
  const verdict = classifyAdd(known, addRequest);
  if (verdict.kind === "refused") return verdict.error;
  if (verdict.kind === "repeat") return renew(verdict.attachment, addRequest, services);
  if (signal.aborted) return cancelledError(addRequest);
  // A report names only the interface: sent later, it would be about the sandbox that comes now.
  if (known?.noticePending === true) {
    await orAborted(services.detachReporter.deliver(known), signal);
    if (signal.aborted) return cancelledError(addRequest);
  }
  const attachment = await assignAddresses(addRequest, services, signal);
  if (!isCniError(attachment)) services.deliveries.open(attachment);
  return attachment;
}

/**
 * The runtime may have created the sandbox anew under the same ID. Neither the spooled DEL of the old one nor the end of the
 * old netns may detach the new one.
 */
async function renew(
  known: Attachment,
  addRequest: AddRequest,
  services: AgentServices,
): Promise<Attachment> {
  const { startNs, netns } = addRequest;
  // The netns may be going away at this moment; its end is only noticed because it was seen once.
  const netnsSeen = addRequest.netnsSeen || (known.netnsSeen && known.netns === netns);
  const renewed = startNs > known.startNs ? { ...known, startNs, netns, netnsSeen } : known;
  if (renewed !== known) await services.attachments.commit({ put: [renewed] });
  services.deliveries.repeat(known, renewed);
  return renewed;
}

function answerWith(attachment: Attachment, { version }: AddRequest, services: AgentServices): Answer {
  return {
    ...succeed(resultAnswer(version, attachment.result)),
    async settle(outcome) {
      if (services.deliveries.settle(attachment, outcome)) await takeBack(attachment, services);
    },
  };
}

/**
 * Does what a DEL would do, because the runtime never learned of the attachment. The same client may still ask once more: it
 * does when the agent hung up on it while shutting down.
 */
async function takeBack(attachment: Attachment, services: AgentServices): Promise<void> {
  const { attachments, deliveries, locks, clock, detachReporter, log } = services;
  await locks.run(attachmentKey(attachment), async () => {
    const current = attachments.get(attachment);
    if (current === undefined || !deliveries.isLost(attachment, current)) return; // gone, or another one has its place, or it was asked for again
    const tombstone = detached(current, { now: clock.now(), deadlineNs: current.startNs - 1n });
    await attachments.commit({ put: [tombstone] });
    log.info("answer was lost, addresses taken back", {
      containerID: attachment.containerID,
      interface: attachment.interface,
      network: attachment.scope.network,
    });
  });
  detachReporter.wake();
}
