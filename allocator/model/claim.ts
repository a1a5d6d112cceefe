// SPDX-License-Identifier: Apache-2.0
import type { Address, Family } from "../ip/address.ts";
import type { InterfacePools, Interfaces } from "./interfaces.ts";

/** What an address is kept for across pods. `ordinal` of a StatefulSet, `slot` of a Deployment's set. */
export interface Identity {
  readonly kind: string; // Pod, StatefulSet, Deployment, Job, VirtualMachineInstance, ...
  readonly apiVersion: string;
  readonly name: string;
  /** Absent until the owner is known; an owner re-created under the same name has another one. */
  readonly uid?: string;
  readonly ordinal?: number;
  readonly slot?: number;
}

/** What is asked for one claim; in a claim, as it was understood when that was made. */
export interface ClaimRequest {
  /** Exactly these, one of each family at most, or those of each interface. */
  readonly addresses?: readonly Address[];
  /** With addresses: the interface of each; absent: none was named. In a claim without `interfaces` it is of what the claim has as well: the two are written together. */
  readonly interfaces?: Interfaces;
  /** Any address of these pools, in this order of preference: names, `name/IPv4` for the addresses of one family, or CIDRs of their ranges. */
  readonly pools?: readonly string[];
  /** In place of `pools`, the same for each interface; of one without pools, any of its network. Beside addresses of it, these must be of them. */
  readonly interfacePools?: InterfacePools;
  /** Absent: one of each family that the pool has. */
  readonly families?: readonly Family[];
  /** With addresses: any other of the pools will do where another has one of them. Absent: a refusal. */
  readonly fallback?: "any";
}

export type RetentionChoice = "Release" | "Retain";

/** When an identity's addresses are let go (as a StatefulSet's persistentVolumeClaimRetentionPolicy, KEP-1847). */
export interface Retention {
  readonly whenDeleted: RetentionChoice;
  readonly whenScaled: RetentionChoice;
  /** Milliseconds after which retained addresses are released all the same; null: never. */
  readonly ttlMs: number | null;
}

/**
 * The pod that a claim is bound to. First only held (at admission a pod has no UID, and one from generateName
 * has no name: `token` finds it again), then bound.
 */
export interface Binding {
  /** Written into the pod as `berth.dev/token`; empty for a pod that is found by its name. */
  readonly token: string;
  readonly podName: string;
  readonly podUID: string;
  /** Empty: held, not bound. */
  readonly node: string;
  /** The interface of the sandbox that got the addresses; another one of the same pod does not get them too. */
  readonly interface?: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

export type ClaimPhase = "Pending" | "Reserved" | "Held" | "Bound" | "Attached" | "Detached" | "Retained";

/** The sandbox that uses the claim, as the agent of its node last reported. */
export interface ClaimAttachment {
  readonly node: string;
  readonly containerID: string;
  readonly interface: string;
  /** Of the pod that the sandbox belongs to; empty when the runtime did not say. */
  readonly podUID: string;
  readonly since: number;
  /** The agent saw the sandbox go: the proof that a binding may move (invariant 3a). */
  readonly detached: boolean;
  /** The path of its network namespace, where the agent could see it, and the boot of the host that it is of. */
  readonly netns?: string;
  readonly bootID?: string;
}

export interface ClaimStatus {
  readonly attachment?: ClaimAttachment;
  /** Why a hand-made claim has no addresses yet, for people. */
  readonly message?: string;
}

/** The record of an identity, its request, its addresses and its binding. */
export interface Claim {
  readonly namespace: string;
  readonly name: string;
  readonly identity: Identity;
  /** The pod's interface that gets the addresses; absent: the first that asks. */
  readonly interface?: string;
  /** Name of a claim of the same namespace. When that one is deleted, what is asked for here goes over to this claim (ADR 0021). */
  readonly takesOver?: string;
  readonly request: ClaimRequest;
  readonly retention: Retention;
  /** Empty, with an empty nonce: made by hand and not reserved yet. */
  readonly addresses: readonly Address[];
  /** The interface of each of `addresses`, where these are not what the request lists: it names pools, or lets others do. */
  readonly interfaces?: Interfaces;
  /** Equals that of its reservations. */
  readonly nonce: string;
  readonly binding?: Binding;
  /** The owner is gone or does not need this identity now, and retention keeps the addresses. */
  readonly retained?: { readonly since: number; readonly because: "deleted" | "scaled" };
  /** Milliseconds since 1970: last admitted without being used yet; a pod has 120 s from here to appear. */
  readonly admittedAt?: number;
  /** A person made it: it outlives pods and workloads, and goes only when it is deleted by hand. */
  readonly handMade?: boolean;
  /** From here nobody may use the claim; its reservations are cooled, then it is deleted. */
  readonly releasing?: boolean;
  /**
   * Somebody deleted it past admission while a pod had it (Kubernetes only): it serves that pod until its sandbox has
   * ended, and nobody else. Never written.
   */
  readonly deleting?: boolean;
  readonly status: ClaimStatus;
}

export interface ClaimKey {
  readonly namespace: string;
  readonly name: string;
}

/** The claim's name in words and in the store: namespace/name. */
export function claimKey(claim: ClaimKey): string {
  return `${claim.namespace}/${claim.name}`;
}

/** Whether a claim of that name may go over to the claim with this key: only within a namespace. */
export function isPredecessor(
  claim: ClaimKey,
  key: ClaimKey,
  takesOver: string | readonly string[] | undefined,
): boolean {
  const isNamed = typeof takesOver === "object" ? takesOver.includes(claim.name) : claim.name === takesOver;
  return isNamed && claim.namespace === key.namespace;
}

export const DEFAULT_RETENTION: Retention = { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null };

export function isBound(claim: Claim): boolean {
  return claim.binding !== undefined && claim.binding.node !== "";
}

/** A pod was bound to it, or a sandbox had its addresses. */
export function hadPod(claim: Claim): boolean {
  return isBound(claim) || claim.status.attachment !== undefined;
}

/**
 * It is given back, and is there all the same: whoever else has set a finalizer keeps the record. Berth's own goes with the
 * write that begins to give back what somebody deleted.
 */
export function isKeptByOthers({ releasing, deleting }: Claim): boolean {
  return releasing === true && deleting === true;
}

export function isReserved(claim: Claim): boolean {
  return claim.nonce !== "" && claim.releasing !== true;
}
