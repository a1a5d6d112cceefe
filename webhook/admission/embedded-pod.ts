// SPDX-License-Identifier: Apache-2.0
// On one host no API server keeps pods: their reviews create, change and end them.

import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { sameSet } from "../../allocator/base/same-set.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { admissionAnswerOf, settlePod } from "../../allocator/demand/admitted-pod.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import { NO_EVIDENCE } from "../../allocator/lifecycle/binding-evidence.ts";
import { ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, podMetadata } from "../../allocator/manifest/kubernetes-object.ts";
import { claimKey, isReserved } from "../../allocator/model/claim.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Operation,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, type ObjectStore, objectOf } from "./admission-context.ts";
import { admitForeign } from "./foreign-review.ts";
import { changed, missingClaim, movedOn } from "./pod-rules.ts";
import { beforeOf } from "./unknown-keys.ts";

export async function reviewEmbeddedPod(
  admission: AdmissionContext,
  objects: ObjectStore,
  request: AdmissionRequest,
): Promise<AdmissionResponse> {
  if (request.operation === "DELETE") return await onPodDeleted(admission, objects, request);
  const pod = objectOf(request, "object");
  if (isRefusal(pod)) return denied(request.uid, pod);
  const wrong =
    expectKind(pod, ["Pod"]) ??
    refusedChange(admission, request, pod) ??
    // on a dry run the pod was given no claim
    (request.dryRun && request.operation === "CREATE" ? undefined : await missingClaim(admission, pod));
  if (wrong !== undefined) return denied(request.uid, wrong);
  const there = await nameTaken(admission, request.operation, pod);
  if (there !== undefined) return denied(request.uid, there, 409);
  const answer = admitForeign(admission, request, pod);
  if (request.dryRun || !answer.allowed) return answer;
  const refusal =
    (await bindByToken(admission, pod)) ?? (await keepPod(admission, objects, request.operation, pod));
  return refusal === undefined ? answer : denied(request.uid, refusal);
}

function refusedChange(
  admission: AdmissionContext,
  request: AdmissionRequest,
  pod: KubeObject,
): Refusal | undefined {
  const before = beforeOf(request);
  return before && changed({ ...admission.context, dialects: admission.dialects }, before, pod);
}

/** An API server refuses a second pod of the same name; here the review has to. */
async function nameTaken(
  { inventory }: AdmissionContext,
  operation: Operation,
  { metadata: { namespace, name, uid } }: KubeObject,
): Promise<Refusal | undefined> {
  const there = operation === "CREATE" ? await inventory.pod(namespace, name) : undefined;
  if (there === undefined || there.uid === uid) return undefined;
  const words = `pod ${namespace}/${name} exists already; delete it first`;
  return refuse("OBJECT_INVALID", words, { namespace, pod: name });
}

async function keepPod(
  admission: AdmissionContext,
  objects: ObjectStore,
  operation: Operation,
  pod: KubeObject,
): Promise<Refusal | undefined> {
  const { context, inventory } = admission;
  await objects.keep(pod);
  if (operation !== "CREATE") return undefined;
  const { namespace, uid } = pod.metadata;
  const origin = { ...podMetadata(pod, namespace), uid };
  const lost =
    (await settlePod(context, inventory, origin)) ??
    (await confirmClaim(context, pod)) ??
    (await confirmHold(admission, pod));
  // if another pod of the name was kept first, that one stays
  const own = lost !== undefined && (await nameTaken(admission, operation, pod)) === undefined;
  if (own) await objects.forget("Pod", namespace, pod.metadata.name);
  return lost;
}

/** Finds the claim that is held for the pod, and tells it the pod's name. */
async function bindByToken(admission: AdmissionContext, pod: KubeObject): Promise<Refusal | undefined> {
  const held = heldFor(pod);
  if (held === undefined) return undefined;
  const met = await bind(admission.context, held.key, held.target, async () => NO_EVIDENCE);
  return isRefusal(met) ? met : undefined;
}

function heldFor({ metadata: { namespace, name, uid, annotations } }: KubeObject) {
  const claim = annotations[ASSIGNED_CLAIM];
  const token = annotations[ASSIGNED_TOKEN];
  if (claim === undefined || token === undefined) return undefined;
  return { key: claimKey({ namespace, name: claim }), target: { name, uid, token, node: "" } };
}

/**
 * As `confirmClaim`, for a pod with a token: if its review took long, as on a machine that was suspended, its hold may have been taken
 * back before the pod was kept. A claim that still has the hold is written too: the compare-and-set of whoever is about to
 * take the hold back then fails.
 */
async function confirmHold(admission: AdmissionContext, pod: KubeObject): Promise<Refusal | undefined> {
  const held = heldFor(pod);
  if (held === undefined) return undefined;
  const { store, clock } = admission.context;
  const change = { kind: "claim", key: held.key, doing: "its pod was admitted" } as const;
  return await retryOnConflict(store, change, async (seen) => {
    if (seen?.record.binding?.podUID !== held.target.uid) return await bindByToken(admission, pod);
    const { kind } = await store.replace("claim", seen, { ...seen.record, admittedAt: clock.now() });
    return kind === "replaced" ? undefined : kind;
  });
}

async function onPodDeleted(
  admission: AdmissionContext,
  objects: ObjectStore,
  request: AdmissionRequest,
): Promise<AdmissionResponse> {
  const pod = objectOf(request, "oldObject");
  const { namespace, name } = isRefusal(pod) ? request : pod.metadata;
  if (request.dryRun) return allowed(request.uid);
  await objects.forget("Pod", namespace, name);
  enqueueClaimsOf(admission, namespace, name);
  return allowed(request.uid);
}

/**
 * Makes sure that the claim of a pod which was just kept is still there. Nobody knew of the pod between its two reviews, so the claim
 * may have been released with the pod that had it before, or changed for another pod of the name. The pod is kept first and its
 * claim written after; the garbage collector reads the claim, then the pods, then compares and sets: one of the two
 * notices the other.
 * Throws REVISION_CONFLICT when the claim keeps changing.
 */
async function confirmClaim(
  { store, clock }: Pick<Context, "store" | "clock">,
  { metadata }: KubeObject,
): Promise<Refusal | undefined> {
  const { namespace, name, annotations } = metadata;
  // a pod with a token has bound its claim by it
  if (annotations[ASSIGNED_CLAIM] !== name || annotations[ASSIGNED_TOKEN] !== undefined) return undefined;
  const key = claimKey({ namespace, name });
  const change = { kind: "claim", key, doing: "its pod was admitted" } as const;
  return await retryOnConflict(store, change, async (seen) => {
    if (seen === undefined || !isReserved(seen.record)) return released(key);
    const assigned = admissionAnswerOf(annotations)?.words ?? [];
    if (!sameSet(assigned, formatHolding(seen.record))) return movedOn(seen.record, assigned);
    const next = { ...seen.record, admittedAt: clock.now() };
    const { kind } = await store.replace("claim", seen, next);
    return kind === "replaced" ? undefined : kind;
  });
}

function released(key: string): Refusal {
  const words = `claim ${key} was let go with the pod that had it, while this one was on its way; create the pod again`;
  return refuse("CLAIM_RELEASING", words, { claim: key });
}

/** A pod's status, reported: on the embedded stack only that says that a pod has ended while its object stays. */
export async function statusSeen(
  admission: AdmissionContext,
  request: AdmissionRequest,
): Promise<AdmissionResponse> {
  const { embedded } = admission;
  const isReport = request.subResource === "status" && request.operation === "UPDATE" && !request.dryRun;
  if (embedded === undefined || !isReport) return allowed(request.uid);
  const pod = objectOf(request, "object");
  if (isRefusal(pod)) return denied(request.uid, pod);
  const wrong = expectKind(pod, ["Pod"]);
  if (wrong !== undefined) return denied(request.uid, wrong);
  const { namespace, name, uid } = pod.metadata;
  const there = await admission.inventory.pod(namespace, name);
  if (there?.uid !== uid) return allowed(request.uid);
  await embedded.keep(pod);
  enqueueClaimsOf(admission, namespace, name);
  return allowed(request.uid);
}

/** Its pod is gone, or has ended. */
function enqueueClaimsOf(admission: AdmissionContext, namespace: string, name: string): void {
  for (const { record } of admission.context.view.claimsOfPod(namespace, name))
    admission.enqueueForGc(record);
}
