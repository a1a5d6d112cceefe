// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import type { OwnReader } from "../manifest/pod-claim.ts";
import { bareNamespace, type ClusterState, type NamespaceState } from "../model/cluster-state.ts";
import type { PodMetadata } from "../model/identity.ts";
import { admissionAnswerOf, namesOthersItself, requestAsAnswered } from "./admitted-pod.ts";

interface Knowledge extends Pick<Context, "view" | "store" | "clock" | "random"> {
  readonly own: OwnReader;
}

/** By the pod alone: whether it names none of the addresses itself that its review assigned to it. */
export function namesOthers({ namespace, annotations }: PodMetadata, own: OwnReader): boolean {
  const answer = admissionAnswerOf(annotations);
  return (
    answer !== undefined && namesOthersItself(own(annotations, bareNamespace(namespace)).annotations, answer)
  );
}

/**
 * Why a pod is not bound to the claim that it was assigned: it asks itself for others, since another webhook changed its request after its
 * review, and no second review has refused that (invariant 7). What it may have changed to is read as the binder reads it.
 */
export async function changedAfterReview(
  knowledge: Knowledge,
  inventory: Pick<ClusterState, "workload">,
  { pod, namespace }: { readonly pod: PodMetadata; readonly namespace: NamespaceState },
): Promise<Refusal | undefined> {
  const answer = admissionAnswerOf(pod.annotations);
  if (answer === undefined || !namesOthers(pod, knowledge.own)) return undefined;
  // what is left to another system is out of it already
  const read = knowledge.own(pod.annotations, namespace);
  const of = { pod: { ...pod, annotations: read.annotations }, namespace: read.namespace, answer };
  const asked = await requestAsAnswered(knowledge, inventory, of);
  return isRefusal(asked) ? asked : undefined;
}
