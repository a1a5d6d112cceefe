// SPDX-License-Identifier: Apache-2.0
// How long a claim is held for a pod that was not seen yet.

import type { Binding } from "../model/claim.ts";
import type { PodState } from "../model/cluster-state.ts";

/** A claim is held this long for a pod that does not exist yet. */
export const HOLD_TIMEOUT_MS = 120_000;

/**
 * Whether the pod that the claim is held for will not come; `pod`: what is there of its name or token now. One that was
 * met and is gone, or has ended, does not come back; one that nobody has met has its time.
 */
export function isHoldExpired(
  { podUID, since }: Pick<Binding, "podUID" | "since">,
  pod: Pick<PodState, "uid" | "ended"> | undefined,
  now: number,
): boolean {
  const livePodUID = pod?.ended === false ? pod.uid : undefined;
  if (podUID !== "") return livePodUID !== podUID;
  return livePodUID === undefined && now - since >= HOLD_TIMEOUT_MS;
}

/**
 * The hold as a host has to take it, where admission writes the pod's name and UID into it a moment before it keeps the pod itself: that
 * a pod with a UID is not there proves nothing yet.
 */
export function asUnmet({ since }: Pick<Binding, "since">): Pick<Binding, "podUID" | "since"> {
  return { podUID: "", since };
}
