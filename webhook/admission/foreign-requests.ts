// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { type OwnAnnotations, ownAnnotations } from "../../allocator/demand/foreign-pools.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import { templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import {
  CALICO_KEYS,
  FOREIGN_KEYS,
  foreignDefaults,
  foreignRequests,
  judgeForeign,
  NETWORKS,
} from "../../allocator/manifest/foreign-requests.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type NamespaceState, namespaceOf } from "../../allocator/model/cluster-state.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
} from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { OPT_IN_ANNOTATIONS, optsIn } from "./opt-in.ts";
import { beforeOf } from "./own-keys.ts";

/** The annotations by which the webhook configurations find such objects. */
export const FOREIGN_ANNOTATIONS: readonly string[] = [...FOREIGN_KEYS.map(({ key }) => key), NETWORKS];

/**
 * What of the annotations is for Berth. Before anything is left to another system the view hears of every pool that there is:
 * the pool may have been made a moment before the pod.
 */
export async function ownOf(
  { context: { view }, calico, catchUp }: AdmissionContext,
  annotations: Labels,
  namespace: NamespaceState,
): Promise<OwnAnnotations> {
  const own = ownAnnotations(view, annotations, namespace, calico);
  const heard = own.left.length > 0 && catchUp !== undefined && (await catchUp());
  return heard ? ownAnnotations(view, annotations, namespace, calico) : own;
}

/** The pod with what of its annotations is for Berth; its JSON stays as it came. */
export async function ownPod(
  admission: AdmissionContext,
  pod: KubeObject,
  namespace: NamespaceState,
): Promise<{ readonly own: KubeObject; readonly left: readonly string[] }> {
  const { annotations, left } = await ownOf(admission, pod.metadata.annotations, namespace);
  return { own: { ...pod, metadata: { ...pod.metadata, annotations } }, left };
}

/** What is left to another system, as the administrator wants it. */
export function judgeLeft(
  { foreignRequests: choice = "warn" }: AdmissionContext,
  left: readonly string[],
): readonly string[] | Refusal {
  return judgeForeign(left, choice);
}

/** Lets a new pod through, with what it asks of other systems told; or refuses it for that. */
export function admitForeign(
  admission: AdmissionContext,
  request: AdmissionRequest,
  pod: KubeObject,
): AdmissionResponse {
  if (request.operation !== "CREATE" || isExempt(pod)) return allowed(request.uid);
  const told = judge(admission, pod.metadata.annotations);
  return isRefusal(told) ? denied(request.uid, told) : allowed(request.uid, told);
}

/** Here for what it asks of others alone: it never came to `/mutate/pods`, and what its namespace says is not for it. */
export async function onlyForeign(
  { inventory, calico }: AdmissionContext,
  { metadata }: KubeObject,
): Promise<boolean> {
  const { annotations, namespace } = metadata;
  if (foreignRequests(annotations, calico).length === 0) return false;
  const sends = (key: string) => calico !== "none" || !CALICO_KEYS.includes(key);
  if (OPT_IN_ANNOTATIONS.some((key) => sends(key) && annotations[key] !== undefined)) return false;
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
  if (admission.foreignRequests !== "refuse" || before === undefined) return judge(admission, now);
  const was = templateAnnotations(before);
  return judge(
    admission,
    Object.fromEntries(Object.entries(now).filter(([key, value]) => was[key] !== value)),
  );
}

/** The same of a namespace. */
export function foreignInNamespace(
  admission: AdmissionContext,
  request: AdmissionRequest,
  { metadata: { annotations } }: KubeObject,
): readonly string[] | Refusal {
  const was = beforeOf(request)?.metadata.annotations ?? {};
  const now = Object.entries(annotations).filter(([key, value]) => was[key] !== value);
  return judgeForeign(foreignDefaults(Object.fromEntries(now)), admission.foreignRequests ?? "warn");
}

function judge(
  { foreignRequests: choice = "warn", calico }: AdmissionContext,
  annotations: Labels,
): readonly string[] | Refusal {
  return judgeForeign(foreignRequests(annotations, calico), choice);
}
