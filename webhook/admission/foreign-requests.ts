// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import {
  FOREIGN_KEYS,
  foreignRequests,
  judgeForeign,
  NETWORKS,
} from "../../allocator/manifest/foreign-requests.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
} from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { OPT_IN_ANNOTATIONS, optsIn } from "./opt-in.ts";
import { beforeOf, templateOf } from "./own-keys.ts";

/** The annotations by which the webhook configurations find such objects. */
export const FOREIGN_ANNOTATIONS: readonly string[] = [...FOREIGN_KEYS.map(({ key }) => key), NETWORKS];

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
  { inventory }: AdmissionContext,
  { metadata }: KubeObject,
): Promise<boolean> {
  const { annotations, namespace } = metadata;
  if (foreignRequests(annotations).length === 0) return false;
  if (OPT_IN_ANNOTATIONS.some((key) => annotations[key] !== undefined)) return false;
  return !optsIn((await namespaceOf(inventory, namespace)).labels);
}

/** The same of a template; what it asked for before is no reason to refuse a change of something else. */
export function foreignInTemplate(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): readonly string[] | Refusal {
  const now = templateOf(object);
  const before = beforeOf(request);
  if (admission.foreignRequests !== "refuse" || before === undefined) return judge(admission, now);
  const was = templateOf(before);
  return judge(
    admission,
    Object.fromEntries(Object.entries(now).filter(([key, value]) => was[key] !== value)),
  );
}

function judge(
  { foreignRequests = "warn" }: AdmissionContext,
  annotations: Labels,
): readonly string[] | Refusal {
  return judgeForeign(annotations, foreignRequests);
}
