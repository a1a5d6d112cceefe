// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../../allocator/base/errors.ts";
import { type BindingEvidence, type BindTarget, planBind } from "../../../allocator/lifecycle/bind.ts";
import { askEvidence, NO_EVIDENCE } from "../../../allocator/lifecycle/binding-evidence.ts";
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
  if (binding === undefined) return NO_EVIDENCE;
  const { podName, node } = binding;
  const holder = podName === "" ? undefined : pods.get(`${namespace}/${podName}`);
  const holderThere = node !== "" && holder?.uid === binding.podUID && !holder.ended;
  const evidence = holderThere ? { ...NO_EVIDENCE, holderThere } : NO_EVIDENCE;
  if (!isRefusal(planBind(claim, pod, evidence, now))) return evidence;
  return { ...evidence, ...(await askEvidence(inventory, claim, now)) };
}
