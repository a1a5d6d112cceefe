// SPDX-License-Identifier: Apache-2.0
import { type CniError, isCniError } from "../cni/errors.ts";
import { resultAnswer } from "../cni/result.ts";
import { type Ask, judgeAsk, readAsk } from "./ask.ts";
import { type Attachment, detached, placeId } from "./attachment.ts";
import type { Answer } from "./connection.ts";
import { lend } from "./lend.ts";
import { giveUp } from "./occupy.ts";
import type { Parts, Request } from "./parts.ts";
import { errorVersion, fail, succeed } from "./reply.ts";
import { unlessAborted, within } from "./within.ts";

/** Below the client's 30 s, so that the answer is ours. */
const LIMIT_MS = 25_000;

/** Gives addresses to one interface of one container: all or none, journalled before they are answered. */
export async function add(request: Request, parts: Parts): Promise<Answer> {
  const refused = (error: CniError) => fail(errorVersion(request.config.fields), error);
  const ask = await readAsk(request, parts);
  if (isCniError(ask)) return refused(ask);
  const { startNs } = request.call;
  return parts.inFlight.run(placeId(ask), startNs, (deletion) =>
    within({ ms: LIMIT_MS, clock: parts.clock, signals: [request.signal, deletion] }, (signal) =>
      parts.turns.run(placeId(ask), async () => {
        const attachment = await attach(ask, parts, signal);
        return isCniError(attachment) ? refused(attachment) : answerWith(attachment, ask, parts);
      }),
    ),
  );
}

async function attach(ask: Ask, parts: Parts, signal: AbortSignal): Promise<Attachment | CniError> {
  const known = parts.attachments.get(ask);
  const verdict = judgeAsk(known, ask);
  if (verdict.kind === "refused") return verdict.error;
  if (verdict.kind === "repeat") return renew(verdict.attachment, ask, parts);
  if (signal.aborted) return giveUp(ask);
  // A notice names the place only: said later, it would be about the sandbox that comes now.
  if (known?.noticePending === true) {
    await unlessAborted(parts.notices.deliver(known), signal);
    if (signal.aborted) return giveUp(ask);
  }
  const attachment = await lend(ask, parts, signal);
  if (!isCniError(attachment)) parts.receipts.open(attachment);
  return attachment;
}

/**
 * To the runtime it may be a new sandbox of the old name, whose DEL waits in the spool: that one must not end it, nor
 * must the end of the old netns.
 */
async function renew(known: Attachment, ask: Ask, parts: Parts): Promise<Attachment> {
  const { startNs, netns } = ask;
  // It may be going at this moment; that it was there once is what its end is found by.
  const netnsSeen = ask.netnsSeen || (known.netnsSeen && known.netns === netns);
  const renewed = startNs > known.startNs ? { ...known, startNs, netns, netnsSeen } : known;
  if (renewed !== known) await parts.attachments.commit({ put: [renewed] });
  parts.receipts.repeat(known, renewed);
  return renewed;
}

function answerWith(attachment: Attachment, { version }: Ask, parts: Parts): Answer {
  return {
    ...succeed(resultAnswer(version, attachment.result)),
    async settle(outcome) {
      if (parts.receipts.settle(attachment, outcome)) await takeBack(attachment, parts);
    },
  };
}

/**
 * What a DEL would do, for the runtime that never learned of the attachment. But the same client may ask once more: it
 * does when the agent hung up on it because it ends.
 */
async function takeBack(attachment: Attachment, parts: Parts): Promise<void> {
  const { attachments, receipts, turns, clock, notices, log } = parts;
  await turns.run(placeId(attachment), async () => {
    const current = attachments.get(attachment);
    if (current === undefined || !receipts.share(current, attachment)) return; // gone, or another one has its place
    const tombstone = detached(current, { now: clock.now(), deadlineNs: current.startNs - 1n });
    await attachments.commit({ put: [tombstone] });
    log.info("answer was lost, addresses taken back", {
      containerID: attachment.containerID,
      interface: attachment.interface,
      network: attachment.scope.network,
    });
  });
  notices.kick();
}
