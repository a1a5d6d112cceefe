// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { templateAnnotations, templateLabels } from "../../allocator/demand/workload-allocation.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { beforeOf } from "./unknown-keys.ts";

/** Asked for by this change, and not there before it. */
export function isNew(request: AdmissionRequest, object: KubeObject): boolean {
  const before = beforeOf(request);
  return (
    before === undefined ||
    !isDeepStrictEqual(templateAnnotations(before), templateAnnotations(object)) ||
    !isDeepStrictEqual(templateLabels(before), templateLabels(object))
  );
}

/** The list, or how many pods it is for. */
export function isNewSize(request: AdmissionRequest, object: KubeObject, replicas: number): boolean {
  return isNew(request, object) || beforeOf(request)?.spec.count("replicas", 1) !== replicas;
}

/** In a cluster nothing new is asked for; an owner must be able to label what could not be made today. */
export function isSameSpec(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): boolean {
  const before = admission.embedded === undefined ? beforeOf(request) : undefined;
  return before !== undefined && isDeepStrictEqual(before.spec.value, object.spec.value);
}
