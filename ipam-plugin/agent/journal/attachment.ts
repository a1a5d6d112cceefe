// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../../allocator/ip/address.ts";
import type { NetworkKey } from "../../cni/config.ts";
import type { IpamResult } from "../../cni/result.ts";
import type { AttachmentKey, PodRef, SandboxNotice } from "../claims/claim-source.ts";
import type { Host, Presence } from "./host.ts";

/** What the runtime calls an attachment by, in the space of its network. */
export interface AttachmentId {
  readonly scope: NetworkKey;
  readonly containerID: string;
  readonly interface: string;
}

/** Where the addresses came from. `unknown`: a DEL came for what was never attached here. */
export type Source = "claim" | "block" | "ranges" | "static" | "unknown";
export const SOURCES: readonly Source[] = ["claim", "block", "ranges", "static", "unknown"];

/**
 * One attachment as the journal has it. A detached one is a tombstone, kept for a while: an ADD that began before
 * the DEL may still arrive, because runtimes kill the main plugin and not the IPAM plugin under it.
 */
export interface Attachment extends AttachmentId {
  readonly state: "attached" | "detached";
  readonly source: Source;
  readonly netns: string;
  /**
   * What was at the path at ADD, by device and inode: if that is not there any more, the sandbox is gone. True: something was, and it
   * was not written down what.
   */
  readonly netnsSeen: string | boolean;
  readonly pod?: PodRef;
  /** namespace/name */
  readonly claim?: string;
  /** Whose blocks the addresses are of; with source `block` alone. */
  readonly pool?: string;
  /** Enough to answer a repeated ADD. */
  readonly result: IpamResult;
  /** CLOCK_MONOTONIC of the ADD's client. */
  readonly startNs: bigint;
  /** Milliseconds since 1970. */
  readonly attachedAt: number;
  readonly bootId: string;
  /** Milliseconds since 1970; 0 while attached. */
  readonly detachedAt: number;
  /** ADDs that began up to here, in CLOCK_MONOTONIC of this boot, are about the sandbox that is gone. */
  readonly deadlineNs: bigint;
  /** The owner of the claim's record has yet to be told of the detachment. */
  readonly noticePending: boolean;
}

/** The last address that a range set of a scope gave away: the next search begins behind it. */
export interface Position {
  readonly scope: NetworkKey;
  readonly rangeSet: number;
  readonly address: Address;
}

const NOTHING: IpamResult = { addresses: [], routes: [], dns: {} };

/** Names of networks, containers and interfaces hold no NUL, so that the parts cannot run into each other. */
export function scopeId({ network, dataDir }: NetworkKey): string {
  return `${dataDir}\0${network}`;
}

export function attachmentKey({ scope, containerID, interface: name }: AttachmentId): string {
  return `${scopeId(scope)}\0${containerID}\0${name}`;
}

/** The place of that id in words: `container b (eth0)`. */
export function nameOf(id: string): string {
  const [interfaceName, containerID] = id.split("\0").reverse();
  return `container ${containerID} (${interfaceName})`;
}

/** The network of the place of that id. */
export function networkOf(id: string): string {
  return id.split("\0")[1] ?? "";
}

export function keyOf({ scope, containerID, interface: name }: AttachmentId): AttachmentKey {
  return { network: scope.network, containerID, interface: name };
}

/** Whether the sandbox's network namespace is there: a runtime may give its name to the next one. */
export async function lookForNetns(
  { netns, netnsSeen }: Pick<Attachment, "netns" | "netnsSeen">,
  host: Pick<Host, "look">,
): Promise<Presence> {
  return await host.look(netns, typeof netnsSeen === "string" ? netnsSeen : undefined);
}

/** The tombstone of an attachment. `superseded`: its claim went on to another sandbox, nobody needs to be told. */
export function detached(
  attachment: Attachment,
  at: { now: number; deadlineNs: bigint; superseded?: boolean },
): Attachment {
  const tells = attachment.claim !== undefined && at.superseded !== true;
  return {
    ...attachment,
    state: "detached",
    detachedAt: at.now,
    deadlineNs: later(at.deadlineNs, attachment.deadlineNs),
    noticePending: attachment.state === "attached" ? tells : attachment.noticePending,
  };
}

/** The tombstone of what was never attached here, so far as is known. */
export function tombstoneFor(
  place: AttachmentId,
  at: { now: number; deadlineNs: bigint; bootId: string },
): Attachment {
  return {
    scope: place.scope,
    containerID: place.containerID,
    interface: place.interface,
    state: "detached",
    source: "unknown",
    netns: "",
    netnsSeen: false,
    result: NOTHING,
    startNs: 0n,
    attachedAt: 0,
    bootId: at.bootId,
    detachedAt: at.now,
    deadlineNs: at.deadlineNs,
    noticePending: false,
  };
}

/** What there is to tell about a detachment; undefined when no claim was involved. */
export function noticeOf(attachment: Attachment): SandboxNotice | undefined {
  const { claim, pod } = attachment;
  return claim === undefined || pod === undefined ? undefined : { claim, pod, attachment: keyOf(attachment) };
}

/** The same of one that is up. */
export function attachedNoticeOf(attachment: Attachment): SandboxNotice | undefined {
  const notice = noticeOf(attachment);
  const { netns, netnsSeen, bootId: bootID, attachedAt } = attachment;
  return notice && { ...notice, attachedAt, ...(netnsSeen && { seenAt: { netns, bootID } }) };
}

function later(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}
