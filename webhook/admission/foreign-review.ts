// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import {
  leftDefaults,
  type OwnAnnotations,
  ownAnnotations,
  ownDefaults,
} from "../../allocator/demand/foreign-pools.ts";
import { givenElsewhere } from "../../allocator/demand/given-elsewhere.ts";
import { macsAside } from "../../allocator/demand/own-macs.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import { templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { readRequest } from "../../allocator/manifest/annotations.ts";
import { isReadWith, withoutUnread } from "../../allocator/manifest/dialects.ts";
import { foreignDefaults, foreignRequests, judgeForeign } from "../../allocator/manifest/foreign-requests.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { forNamespacesAlone, nearMisses } from "../../allocator/manifest/near-keys.ts";
import { optingKeysIn, optsIn } from "../../allocator/manifest/opt-in.ts";
import { unmadeInterfaces } from "../../allocator/manifest/unmade-interfaces.ts";
import { type NamespaceState, namespaceOf } from "../../allocator/model/cluster-state.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
} from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { hasStrayLabels } from "./stray-labels.ts";
import { beforeOf } from "./unknown-keys.ts";

/**
 * What of the annotations is for Berth. Before anything is left to another system the view hears of every pool that there is:
 * the pool may have been made a moment before the pod.
 */
export async function ownOf(
  { context: { view }, dialects, catchUp }: AdmissionContext,
  annotations: Labels,
  namespace: NamespaceState,
): Promise<OwnAnnotations> {
  const own = ownAnnotations(view, annotations, namespace, dialects);
  const isLeft = own.left.length > 0 || leftDefaults(view, namespace.annotations, dialects).length > 0;
  const heard = isLeft && catchUp !== undefined && (await catchUp());
  return heard ? ownAnnotations(view, annotations, namespace, dialects) : own;
}

/** The pod with what of its annotations is for Berth; its JSON stays as it came. */
export async function ownPod(
  admission: AdmissionContext,
  pod: KubeObject,
  namespace: NamespaceState,
): Promise<{
  readonly own: KubeObject;
  readonly defaults: NamespaceState;
  readonly left: readonly string[];
}> {
  const own = await ownOf(admission, pod.metadata.annotations, namespace);
  const metadata = { ...pod.metadata, annotations: own.annotations };
  return { own: { ...pod, metadata }, defaults: own.namespace, left: own.left };
}

/**
 * Judges what does not decide which address a pod gets: requests that are left to another system (warned of or refused, as the
 * administrator wants it), interfaces that nothing makes, keys that are nearly another system's, and MAC addresses that are not `kept`.
 */
export function judgeAside(
  { context: { view }, dialects, embedded, foreignRequests: choice = "warn" }: AdmissionContext,
  { annotations, namespace }: { readonly annotations: Labels; readonly namespace: string },
  left: readonly string[],
  kept: ReadonlySet<Address>,
): readonly string[] | Refusal {
  const macs = macsAside(view, annotations, { dialects, namespace }, kept);
  if (isRefusal(macs)) return macs;
  const beside = [
    ...macs,
    ...nearMisses(annotations, dialects),
    ...forNamespacesAlone(annotations, dialects),
  ];
  const judged = judgeForeign({ asks: left, beside }, choice);
  if (isRefusal(judged)) return judged;
  return [...judged, ...unmadeInterfaces(withoutUnread(annotations, dialects), embedded !== undefined)];
}

/** Lets a pod through, with what it newly asks of other systems told; or refuses it for that. */
export function admitForeign(
  admission: AdmissionContext,
  request: AdmissionRequest,
  pod: KubeObject,
  warnings: readonly string[] = [],
): AdmissionResponse {
  if (isExempt(pod)) return allowed(request.uid, warnings);
  const judged = judge(admission, newlyIn(pod.metadata.annotations, beforeOf(request)?.metadata.annotations));
  return isRefusal(judged) ? denied(request.uid, judged) : allowed(request.uid, [...judged, ...warnings]);
}

/** A pod that is reviewed only for its labels or for what it asks of other systems: it never came to `/mutate/pods`, and its namespace's defaults are not for it. */
export async function onlyForeign(
  { inventory, dialects }: AdmissionContext,
  { metadata }: KubeObject,
): Promise<boolean> {
  const { annotations, labels, namespace } = metadata;
  const { asks, beside } = foreignRequests(annotations, dialects);
  const others = [...asks, ...beside, ...forNamespacesAlone(annotations, dialects)];
  if (others.length === 0 && !hasStrayLabels(labels)) return false;
  const sends = isReadWith(dialects);
  if (optingKeysIn(annotations).some(sends)) return false;
  return !optsIn((await namespaceOf(inventory, namespace)).labels);
}

/** The same of a template; what it asked for before is no reason to refuse a change of something else. */
export function foreignInTemplate(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): readonly string[] | Refusal {
  const now = templateAnnotations(object);
  const before = beforeOf(request);
  if (before === undefined) return judge(admission, now);
  const was = templateAnnotations(before);
  const added = newlyIn(now, was);
  return judge(admission, admission.foreignRequests === "refuse" ? added : now, added);
}

function newlyIn(now: Labels, was: Labels = {}): Labels {
  return Object.fromEntries(Object.entries(now).filter(([key, value]) => was[key] !== value));
}

/** The same of a namespace. */
export function foreignInNamespace(
  admission: AdmissionContext,
  request: AdmissionRequest,
  { metadata: { annotations } }: KubeObject,
): readonly string[] | Refusal {
  const added = newlyIn(annotations, beforeOf(request)?.metadata.annotations);
  const { view } = admission.context;
  const defaults = foreignDefaults(added, admission.dialects);
  const left = leftDefaults(view, added, admission.dialects);
  const choice = admission.foreignRequests ?? "warn";
  const beside = [...defaults.beside, ...unreadDefaults(admission, annotations)];
  return judgeForeign({ asks: [...defaults.asks, ...left], beside }, choice);
}

/** Of what is for Berth, as a name of a pool shows, and cannot be read: every pod of the namespace would be refused for it. */
function unreadDefaults(
  { context: { view }, dialects }: AdmissionContext,
  annotations: Labels,
): readonly string[] {
  const own = ownDefaults(view, { name: "", labels: {}, annotations }, dialects);
  const request = readRequest({}, own);
  return isRefusal(request) ? [`${request.message}; until then the pods of this namespace are refused`] : [];
}

function judge(
  { context: { view }, foreignRequests: choice = "warn", dialects }: AdmissionContext,
  annotations: Labels,
  changed = annotations,
): readonly string[] | Refusal {
  const given = givenElsewhere(view, changed, dialects);
  const { asks, beside } = foreignRequests(annotations, dialects);
  return (
    given ?? judgeForeign({ asks, beside: [...beside, ...forNamespacesAlone(annotations, dialects)] }, choice)
  );
}
