// SPDX-License-Identifier: Apache-2.0
import { type Bindee, type BindFacts, PROMISE_MS, planBind } from "../../allocator/bind.ts";
import type { Binding, Claim } from "../../allocator/claim.ts";
import { isRefusal } from "../../allocator/errors.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import type { PodSeen, Watches } from "../cluster/watches.ts";

/** Who knows what became of the pod and node that a claim is lent to. */
export interface Witness {
  /** Says what is over: the cached one to see whether it is worth while to ask the live one. */
  readonly inventory: Pick<Inventory, "pod" | "fenced">;
  /** Says what is not over: a stale copy only keeps a binding longer. */
  readonly pods: Pick<Watches["pods"], "get">;
}

/** The pod runs no more and never will again. */
export function hasEnded({ phase }: PodSeen): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

/** What decides whether the pod may have the claim; the inventory is not asked where its answer makes no difference. */
export async function factsFor(
  { inventory, pods }: Witness,
  claim: Claim,
  pod: Bindee,
  now: number,
): Promise<BindFacts> {
  const { namespace, binding } = claim;
  const nothing: BindFacts = { fenced: false, promiseOver: false };
  if (binding === undefined) return nothing;
  const { podName, node } = binding;
  const holder = podName === "" ? undefined : pods.get(`${namespace}/${podName}`);
  const holderThere = node !== "" && holder?.uid === binding.podUID && !hasEnded(holder);
  const facts = holderThere ? { ...nothing, holderThere } : nothing;
  if (!isRefusal(planBind(claim, pod, facts, now))) return facts;
  if (node !== "") return { ...facts, fenced: await inventory.fenced(node) };
  const there = podName === "" ? undefined : await inventory.pod(namespace, podName);
  return { ...facts, promiseOver: isOver(binding, there?.uid, now) };
}

/** A pod that was seen once and is gone does not come back; one that nobody saw has its time. */
function isOver({ podUID, since }: Binding, there: string | undefined, now: number): boolean {
  if (podUID !== "") return there !== podUID;
  return there === undefined && now - since >= PROMISE_MS;
}
