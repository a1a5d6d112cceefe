// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/address.ts";
import type { Scope } from "../cni/config.ts";
import type { IpamResult } from "../cni/result.ts";
import type { AttachmentKey, PodRef, SandboxNotice } from "./mooring.ts";

/** What the runtime calls an attachment by, in the space of its network. */
export interface Place {
  readonly scope: Scope;
  readonly containerID: string;
  readonly interface: string;
}

/** Who lent the addresses. `unknown`: a DEL came for what was never attached here. */
export type Source = "claim" | "ranges" | "static" | "unknown";
export const SOURCES: readonly Source[] = ["claim", "ranges", "static", "unknown"];

/**
 * One attachment as the journal has it. A detached one is a tombstone, kept for a while: an ADD that began before
 * the DEL may still arrive, because runtimes kill the main plugin and not the IPAM plugin under it.
 */
export interface Attachment extends Place {
  readonly state: "attached" | "detached";
  readonly source: Source;
  readonly netns: string;
  /** The path existed at ADD: if it does not any more, the sandbox is gone. */
  readonly netnsSeen: boolean;
  readonly pod?: PodRef;
  /** namespace/name */
  readonly claim?: string;
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
  /** Whoever lent the claim has yet to be told of the detachment. */
  readonly noticePending: boolean;
}

/** The last address that a range set of a scope gave away: the next search begins behind it. */
export interface Position {
  readonly scope: Scope;
  readonly rangeSet: number;
  readonly address: Address;
}

const NOTHING: IpamResult = { addresses: [], routes: [], dns: {} };

/** Names of networks, containers and interfaces hold no NUL, so that the parts cannot run into each other. */
export function scopeId({ network, dataDir }: Scope): string {
  return `${dataDir}\0${network}`;
}

export function placeId({ scope, containerID, interface: name }: Place): string {
  return `${scopeId(scope)}\0${containerID}\0${name}`;
}

/** The place of that id in words: `container b (eth0)`. */
export function nameOf(id: string): string {
  const [interfaceName, containerID] = id.split("\0").reverse();
  return `container ${containerID} (${interfaceName})`;
}

export function keyOf({ scope, containerID, interface: name }: Place): AttachmentKey {
  return { network: scope.network, containerID, interface: name };
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
export function neverAttached(
  place: Place,
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

function later(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}
