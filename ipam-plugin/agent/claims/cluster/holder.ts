// SPDX-License-Identifier: Apache-2.0
// Whose a claim is, by what this node remembers of its last sandbox.

import type { Binding, Claim } from "../../../../allocator/model/claim.ts";
import type { SandboxNotice } from "../claim-source.ts";
import type { NodePod } from "./node-cache.ts";

/** The sandbox of this node that was given a claim last. */
export interface Holder extends SandboxNotice {
  /** It was not seen to end. */
  readonly live: boolean;
  /** On the monotonic clock; absent: before this process. */
  readonly answeredAt?: number;
  /** UID of the pod that the claim was bound to by then, for a runtime that does not say it; absent: before this process. */
  readonly boundTo?: string;
}

/** Between two clocks that follow the API server's. */
const CLOCKS_MS = 2_000;

/**
 * Where the runtime says no UID: of the pod that the claim was bound to when it was answered, or, from the journal, the one that is
 * up and was attached after the claim was bound.
 */
export function isOf(holder: Holder | undefined, binding: Binding | undefined): boolean {
  if (holder === undefined || binding === undefined || holder.pod.name !== binding.podName) return false;
  if (holder.pod.uid !== "") return holder.pod.uid === binding.podUID;
  if (holder.boundTo !== undefined) return holder.boundTo === binding.podUID;
  return holder.live && (holder.attachedAt ?? binding.since) >= binding.since - CLOCKS_MS;
}

/** A binding without a UID is that of every pod of the name. */
export function needs(pod: NodePod | undefined, { podUID }: Binding): boolean {
  return pod !== undefined && !pod.finished && (podUID === "" || pod.uid === podUID);
}

/** Whether the claim is the sandbox's, and its status does not say so. */
export function isNews(
  { binding, status, releasing }: Claim,
  { pod, attachment }: Holder,
  node: string,
): boolean {
  if (releasing === true || binding?.node !== node || binding.podName !== pod.name) return false;
  if (pod.uid !== "" && pod.uid !== binding.podUID) return false;
  const said = status.attachment;
  return (
    said === undefined ||
    said.detached ||
    said.podUID !== binding.podUID ||
    said.containerID !== attachment.containerID
  );
}
