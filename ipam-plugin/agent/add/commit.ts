// SPDX-License-Identifier: Apache-2.0
import { type CniError, cniError } from "../../cni/errors.ts";
import type { IpamResult } from "../../cni/result.ts";
import {
  type Attachment,
  attachmentKey,
  detached,
  type Position,
  type Source,
} from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";

/** What an attachment is to be made of. */
interface Assignment {
  readonly source: Source;
  readonly claim?: string;
  readonly pool?: string;
  readonly result: IpamResult;
  readonly positions?: readonly Position[];
  /** Attachments of the same claim that end with this one. */
  readonly superseded?: readonly Attachment[];
}

/** The runtime has gone, or has given up the sandbox, or the claim source takes too long: nothing was taken. */
export function cancelledError({ containerID }: AddRequest): CniError {
  return cniError(
    "TRY_AGAIN_LATER",
    `gave up on container ${containerID}: it took too long or was cancelled; try again`,
  );
}

/**
 * Journals the attachment. Its addresses are held from here on, so that an ADD that runs meanwhile does not pick
 * them; if the journal cannot be written they go back to whoever had them.
 */
export async function commitAttachment(
  addRequest: AddRequest,
  services: AgentServices,
  assignment: Assignment,
): Promise<Attachment> {
  // addresses that a network's configuration writes out are nobody's but in blocks, where the journal holds them from then on
  const written =
    assignment.source === "static" ? assignment.result.addresses.map(({ address }) => address) : [];
  for (const address of written) services.blocks.held(address);
  try {
    return await commitHeld(addRequest, services, assignment);
  } finally {
    for (const address of written) services.blocks.freed(address);
  }
}

async function commitHeld(
  addRequest: AddRequest,
  services: AgentServices,
  assignment: Assignment,
): Promise<Attachment> {
  const { attachments, clock } = services;
  const attachment = attachmentOf(addRequest, services, assignment);
  const [space, id, now] = [attachments.space(addRequest.scope), attachmentKey(addRequest), clock.now()];
  const kept =
    assignment.source === "static" ? [] : assignment.result.addresses.map(({ address }) => address);
  const before = kept.map((address) => ({ address, holder: space.holderOf(address) }));
  // if nothing is written: of a block it was free to be given, nobody has had it since, and it has not to cool
  const freeSince = assignment.source === "block" ? 0 : undefined;
  for (const address of kept) space.hold(address, id);
  for (const { rangeSet, address } of assignment.positions ?? []) space.advance(rangeSet, address);
  const ended = (assignment.superseded ?? []).map((old) =>
    detached(old, { now, deadlineNs: addRequest.startNs, superseded: true }),
  );
  try {
    await attachments.commit({ put: [...ended, attachment], positions: assignment.positions ?? [] });
  } catch (error) {
    for (const { address, holder } of before) {
      // The one before may have been deleted while the journal tried.
      if (holder !== undefined && attachments.isAttached(holder)) space.hold(address, holder);
      else space.release(address, id, freeSince);
    }
    throw error;
  }
  return attachment;
}

function attachmentOf(
  addRequest: AddRequest,
  services: AgentServices,
  { source, claim, pool, result }: Assignment,
): Attachment {
  const { scope, containerID, interface: name, netns, netnsSeen, args, startNs } = addRequest;
  return {
    scope,
    containerID,
    interface: name,
    state: "attached",
    source,
    netns,
    netnsSeen,
    ...(args.pod === undefined ? {} : { pod: args.pod }),
    ...(claim === undefined ? {} : { claim }),
    ...(pool === undefined ? {} : { pool }),
    result,
    startNs,
    attachedAt: services.clock.now(),
    bootId: services.bootId,
    detachedAt: 0,
    deadlineNs: 0n,
    noticePending: false,
  };
}
