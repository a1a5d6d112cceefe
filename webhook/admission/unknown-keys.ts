// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Carrier, unknownKey } from "../../allocator/manifest/own-keys.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import { objectOf } from "./admission-context.ts";

/** The object as it was; undefined: there was none, or nobody can read it. */
export function beforeOf(request: AdmissionRequest): KubeObject | undefined {
  if (request.operation !== "UPDATE") return undefined;
  const before = objectOf(request, "oldObject");
  return isRefusal(before) ? undefined : before;
}

/** A key of Berth's own that this request brings and that means nothing there. What stood there before does not count. */
export function unknownIn(
  request: AdmissionRequest,
  object: KubeObject,
  carrier: Carrier,
): Refusal | undefined {
  if (request.operation === "DELETE") return undefined;
  return unknownKey(carrier, object.metadata.annotations, beforeOf(request)?.metadata.annotations);
}

/** The same of the template of a workload. */
export function unknownInTemplate(request: AdmissionRequest, object: KubeObject): Refusal | undefined {
  const before = beforeOf(request);
  return unknownKey(
    "Pod",
    templateAnnotations(object),
    before === undefined ? {} : templateAnnotations(before),
  );
}
