// SPDX-License-Identifier: Apache-2.0

import type { Refusal } from "../../../allocator/base/errors.ts";
import type { Address, Family } from "../../../allocator/ip/address.ts";
import type { ClaimAttachment } from "../../../allocator/model/claim.ts";
import type { IpamResult } from "../../cni/result.ts";

/** Who a sandbox belongs to, from CNI_ARGS. `uid` is empty when the runtime does not say. */
export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** One (network, container id, interface) on this node. */
export interface AttachmentKey {
  readonly network: string;
  readonly containerID: string;
  readonly interface: string;
}

/** What an attachment is given, wherever it came from: a claim, a range of the configuration, a static list. */
export interface ClaimResult extends IpamResult {
  readonly kind: "claimed";
  /** namespace/name of the claim that the addresses come from; absent for addresses that only this node knows. */
  readonly claim?: string;
}

/** The pod did not ask for a fixed address and no pool is configured: other sources of the configuration serve it. */
export interface NoClaim {
  readonly kind: "unclaimed";
}

export interface AttachRequest {
  readonly pod: PodRef;
  readonly attachment: AttachmentKey;
  /** `ipam.pools` of the network configuration: where a pod that asked for nothing gets its address from. */
  readonly pools: readonly string[];
  /** Of these families alone, if the configuration says so. */
  readonly families?: readonly Family[];
  /** Which etcd of several keeps the claim; absent: this agent's own, or the API server. */
  readonly etcd?: string;
  /** Addresses asked for by runtimeConfig.ips, args.cni.ips or CNI_ARGS IP=, each once. */
  readonly addresses: readonly Address[];
  /** What the runtime or the configuration says of the interface; absent: nothing. */
  readonly mac?: RequestedMac;
  /** The pod's annotations as the runtime sent them (io.kubernetes.cri.pod-annotations), a hint and no authority. */
  readonly annotations: Readonly<Record<string, string>> | undefined;
  readonly seenAt?: SeenAt;
}

/** A MAC address that the interface is going to have, and the pool that it is of; absent: of none. */
export interface RequestedMac {
  readonly mac: string;
  readonly pool?: string;
}

/** Where a sandbox can be seen; absent for one whose network namespace the agent could not see. */
type SeenAt = Required<Pick<ClaimAttachment, "netns" | "bootID">>;

/** A sandbox that has, or had, a claim. */
export interface SandboxNotice {
  readonly claim: string;
  readonly pod: PodRef;
  readonly attachment: AttachmentKey;
  readonly seenAt?: SeenAt;
  /** Of one that the journal has had since before this process, by the clock of the process that attached it. */
  readonly attachedAt?: number;
}

/** A sandbox that has a claim no more. */
export interface SandboxEnd extends SandboxNotice {
  /** Another sandbox of the same pod, on this node, has the claim still: the one that ended was not served after all. */
  readonly remaining?: SandboxNotice;
}

/** The claim that serves a pod, before anything is done to it. */
export interface ClaimMatch {
  readonly kind: "found";
  /** namespace/name */
  readonly claim: string;
  /** Proves that the claim is held for this pod; empty for a pod whose claim is found by its name. */
  readonly token: string;
  /** The addresses that the pod was admitted with; absent when it does not say. */
  readonly assigned?: readonly string[];
  /** The revision at which this very ADD has made the claim, with its sandbox in it. */
  readonly made?: string;
  /** The interfaces that the claim names: one container may have it on each of them. Absent: it serves one interface. */
  readonly interfaces?: readonly string[];
}

/** Whether the journal has anything of that interface of that container. */
export type IsKnown = (sandbox: Pick<AttachmentKey, "containerID" | "interface">) => boolean;

/**
 * Throws NOT_READY where another process has taken the journal. What is read before it is asked has nothing of an ADD of that one, so that a
 * write which compares with what was read comes to nothing if there was any.
 */
export type RequireOurs = () => void;

/**
 * What the agent asks of whoever keeps the claims: the allocator in the same process on the embedded stack, the
 * watch of this node's claims in a cluster.
 *
 * A refusal with code CLAIM_BUSY or CLAIM_RELEASING may pass if tried again; every other refusal will not. Every verb
 * throws BerthError when it cannot know.
 */
export interface ClaimSource {
  /** Which claim serves the pod. Nothing is bound yet: another sandbox of this node may have to end first. */
  find(request: AttachRequest, signal: AbortSignal): Promise<ClaimMatch | NoClaim | Refusal>;
  /**
   * Binds the claim to this pod, node and sandbox; it counts as in use when this resolves. Once `signal` aborts, other
   * ADDs may have the claim: nothing may be written for this one that does not compare with what was read before.
   */
  attach(
    found: ClaimMatch,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<ClaimResult | NoClaim | Refusal>;
  /**
   * The journal has a sandbox with the claim. Told of each at the start, before the agent serves: a crash may have
   * lost what was reported when it was attached.
   */
  attached(notice: SandboxNotice): Promise<void>;
  /**
   * The sandbox is gone, and the claim is in use no more, or is that of the one that remains. Safe to repeat; a notice about a
   * sandbox that is no longer the claim's changes nothing.
   */
  detached(notice: SandboxEnd): Promise<void>;
  /** Sandboxes of this node that were reported to have the claim, and not to have ended, so far as is known. */
  lastSandboxes(claim: string): Promise<readonly ClaimAttachment[]>;
  /** Claims that count as in use on this node, so far as is known: as namespace/name. */
  inUse(): readonly string[];
  /**
   * No sandbox of this node has the claim, nor is one about to: a crash, or an answer that was lost, came between its
   * binding and the journal. Lets it go if it counts as in use here. Safe to repeat. `requireOurs`: asked after the claim was read; absent:
   * nobody else can have its journal.
   */
  absent(claim: string, requireOurs?: RequireOurs): Promise<void>;
}
