// SPDX-License-Identifier: Apache-2.0
// What is known of the node and the pod that a claim is bound to or held for, for `planBind` to judge.

import type { Binding, Claim } from "../model/claim.ts";
import type { ClusterState, PodState } from "../model/cluster-state.ts";
import type { BindingEvidence } from "./bind.ts";
import { asUnmet, isHoldExpired } from "./hold.ts";

/** Where nobody has looked, and where there is no binding to look at. */
export const NO_EVIDENCE: BindingEvidence = { fenced: false, holdExpired: false };

interface SeenOfBinding {
  readonly fenced: boolean;
  /** What is there of the name, or of the token, that it is held for. */
  readonly pod: Pick<PodState, "uid" | "ended"> | undefined;
  readonly place: "cluster" | "host";
}

/** A binding to a node moves when that node is fenced, a hold when its pod will not come. */
export function evidenceOf(
  binding: Binding,
  { fenced, pod, place }: SeenOfBinding,
  now: number,
): BindingEvidence {
  if (binding.node !== "") return { fenced, holdExpired: false };
  const hold = place === "cluster" ? binding : asUnmet(binding);
  return { fenced: false, holdExpired: isHoldExpired(hold, pod, now) };
}

/** The same by what the inventory says now: of the node that the claim is bound to, or of the pod that it is held for. */
export async function askEvidence(
  inventory: Pick<ClusterState, "pod" | "fenced" | "admittedWith">,
  { namespace, binding }: Claim,
  now: number,
): Promise<BindingEvidence> {
  if (binding === undefined) return NO_EVIDENCE;
  const { podName, node, token } = binding;
  const place = inventory.admittedWith === undefined ? "host" : "cluster";
  if (node !== "")
    return evidenceOf(binding, { fenced: await inventory.fenced(node), pod: undefined, place }, now);
  const pod = await (podName === ""
    ? inventory.admittedWith?.(namespace, token)
    : inventory.pod(namespace, podName));
  return evidenceOf(binding, { fenced: false, pod, place }, now);
}
