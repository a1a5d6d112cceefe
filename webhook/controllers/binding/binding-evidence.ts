// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../../allocator/base/errors.ts";
import { type BindingEvidence, type BindTarget, planBind } from "../../../allocator/lifecycle/bind.ts";
import { isHoldExpired } from "../../../allocator/lifecycle/hold.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { ClusterState } from "../../../allocator/model/cluster-state.ts";
import type { Informers } from "../../cluster-state/informers.ts";

/** Who knows what became of the pod and node that a claim is bound to. */
interface EvidenceSource {
  /** Says what is over: the cached one to see whether it is worth while to ask the live one. */
  readonly inventory: Pick<ClusterState, "pod" | "fenced" | "admittedWith">;
  /** Says what is not over: a stale copy only keeps a binding longer. */
  readonly pods: Pick<Informers["pods"], "get">;
}

/** What decides whether the pod may have the claim; the inventory is not asked where its answer makes no difference. */
export async function gatherEvidence(
  { inventory, pods }: EvidenceSource,
  claim: Claim,
  pod: BindTarget,
  now: number,
): Promise<BindingEvidence> {
  const { namespace, binding } = claim;
  const nothing: BindingEvidence = { fenced: false, holdExpired: false };
  if (binding === undefined) return nothing;
  const { podName, node, token } = binding;
  const holder = podName === "" ? undefined : pods.get(`${namespace}/${podName}`);
  const holderThere = node !== "" && holder?.uid === binding.podUID && !holder.ended;
  const evidence = holderThere ? { ...nothing, holderThere } : nothing;
  if (!isRefusal(planBind(claim, pod, evidence, now))) return evidence;
  if (node !== "") return { ...evidence, fenced: await inventory.fenced(node) };
  const there = await (podName === ""
    ? inventory.admittedWith?.(namespace, token)
    : inventory.pod(namespace, podName));
  const livePodUID = there?.ended === false ? there.uid : undefined;
  return { ...evidence, holdExpired: isHoldExpired(binding, livePodUID, now) };
}
