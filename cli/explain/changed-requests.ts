// SPDX-License-Identifier: Apache-2.0
// Pods whose request another webhook changed after their review, where no second review refused that (webhook.failurePolicy: Ignore).

import type { Refusal } from "../../allocator/base/errors.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import { admissionAnswerOf } from "../../allocator/demand/admitted-pod.ts";
import { changedAfterReview, namesOthers } from "../../allocator/demand/changed-after-review.ts";
import { type Finding, pending } from "../../allocator/gc/finding.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { isUpWith } from "../../allocator/lifecycle/up-with.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, podMetadata } from "../../allocator/manifest/kubernetes-object.ts";
import type { OwnReader } from "../../allocator/manifest/pod-claim.ts";
import { type Claim, type ClaimKey, claimKey } from "../../allocator/model/claim.ts";
import { bareNamespace } from "../../allocator/model/cluster-state.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { type Backend, partialCache } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { kubeletsAddresses } from "../backend/reported-addresses.ts";
import { notForPod } from "./kept-for-name.ts";

/** A pod that asks for others than it was assigned, by its annotations alone. */
export interface ChangedPod extends ClaimKey {
  readonly uid: string;
  /** Of what it was assigned. */
  readonly claim: string;
}

/** Undefined: it asks for what it was assigned, or is up with some of that, so that nothing is to be given to it. */
export function changedPod(
  pod: KubeObject,
  addresses: readonly Address[],
  own: OwnReader,
): ChangedPod | undefined {
  const { namespace, name, uid, annotations } = pod.metadata;
  const claim = annotations[ASSIGNED_CLAIM];
  const answer = admissionAnswerOf(annotations);
  if (claim === undefined || answer === undefined || isUpWith(answer, new Set(addresses))) return undefined;
  return namesOthers(podMetadata(pod, namespace), own) ? { namespace, name, uid, claim } : undefined;
}

/** What is asked of Berth, and where it is looked up. */
interface Sources extends Pick<Backend, "store" | "world"> {
  readonly own: OwnReader;
  readonly view: RecordCache;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/**
 * Why the pod is not bound to the claim that it was assigned, by the rule of the binder. Undefined: it is bound or is to be, it is up with the
 * claim's addresses, or this user may not know what decides that.
 */
export async function changedForPod(
  claim: Claim,
  pod: KubeObject,
  { store, world, own, view, now }: Sources,
): Promise<Refusal | undefined> {
  if (claim.binding?.podUID === pod.metadata.uid && claim.binding.node !== "") return undefined;
  if (isUpWith(claim, kubeletsAddresses(pod))) return undefined;
  const clock = { now: () => now, monotonic: () => now, sleep: async () => {} };
  const random = { token: () => "", fraction: () => 0 };
  const of = { view, store, own, clock, random };
  return await ifAllowed(async () => {
    const namespace = (await world.namespace(claim.namespace)) ?? bareNamespace(claim.namespace);
    return await changedAfterReview(of, world, { pod: podMetadata(pod, claim.namespace), namespace });
  });
}

/** What the binder of a cluster says of them, whether a review has seen the pod or not. */
export async function whyNotBound(
  { place, store, world }: Backend,
  {
    claim,
    pod,
    ...sources
  }: {
    readonly claim: Claim | undefined;
    readonly pod: KubeObject | undefined;
  } & Pick<Sources, "own" | "view" | "now">,
): Promise<{ readonly otherwise?: Refusal; readonly changed?: Refusal }> {
  if (place !== "cluster" || claim === undefined || pod === undefined) return {};
  const otherwise = await notForPod(claim, pod, { ...sources, world });
  const changed = await changedForPod(claim, pod, { ...sources, store, world });
  return { ...(otherwise && { otherwise }), ...(changed && { changed }) };
}

/** What a person does about it. */
export function adviceOnChange({ namespace, name, owner }: KubeObject["metadata"]): readonly string[] {
  const again =
    owner === undefined
      ? "and create it again with that"
      : `so that ${owner.kind} ${owner.name} makes it again`;
  const where = owner === undefined ? "the pod itself" : "the template of its workload";
  return [
    "another mutating webhook changes it after Berth's review; see which there are: kubectl get mutatingwebhookconfigurations",
    `let that leave it alone, and write what is to hold into ${where}`,
    `then delete the pod, ${again}: kubectl delete pod ${name} -n ${namespace}`,
  ];
}

/** Of pods that are waiting and ask for others than their claim holds. `claims`: all, of which none is bound to one of these. */
export async function changedRequests(
  pods: readonly ChangedPod[],
  claims: readonly Stored<"claim">[],
  { own, now, ...backend }: Pick<Backend, "store" | "world"> & Pick<Sources, "own" | "now">,
): Promise<readonly Finding[]> {
  const bound = new Set(claims.map(({ record }) => record.binding?.podUID));
  const findings: Finding[] = [];
  for (const { namespace, name, uid, claim: assigned } of pods) {
    if (bound.has(uid)) continue;
    const pod = await backend.world.object("Pod", namespace, name);
    const claim = (await backend.store.get("claim", claimKey({ namespace, name: assigned })))?.record;
    if (pod?.metadata.uid !== uid || claim === undefined) continue;
    const view = await partialCache(new AllowedRecords(backend.store), claim.addresses);
    const changed = await changedForPod(claim, pod, { ...backend, own, now, view });
    if (changed === undefined) continue;
    const words = [changed.message, "it waits", ...adviceOnChange(pod.metadata)].join("; ");
    findings.push(pending("changed-request", `${namespace}/${name}`, words));
  }
  return findings;
}
