// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, objectOf } from "./admission-context.ts";
import { reviewEmbeddedPod, statusSeen } from "./embedded-pod.ts";
import { admitForeign, onlyForeign } from "./foreign-review.ts";
import { assignedChanged, changed, missingClaim } from "./pod-rules.ts";
import { warningsOfLabels } from "./stray-labels.ts";
import { beforeOf } from "./unknown-keys.ts";

/**
 * `/validate/pods`: that a pod which asks for an address has a claim, and keeps it. On the embedded stack this is also
 * where the pod comes to be, with its name and uid, and where it ends; in a cluster the binder hears of both from its
 * watch.
 */
export function validatePods(admission: AdmissionContext): Handler {
  return async (request) => {
    // annotations change by `pods/status` and others, too
    if (admission.embedded === undefined) return await guardPod(admission, request);
    return request.subResource === ""
      ? await reviewEmbeddedPod(admission, admission.embedded, request)
      : await statusSeen(admission, request);
  };
}

async function guardPod(admission: AdmissionContext, request: AdmissionRequest): Promise<AdmissionResponse> {
  if (request.operation !== "CREATE" && request.operation !== "UPDATE") return allowed(request.uid);
  const pod = objectOf(request, "object");
  if (isRefusal(pod)) return denied(request.uid, pod);
  const wrong = expectKind(pod, ["Pod"]) ?? (await objection(admission, request, pod));
  if (wrong !== undefined) return denied(request.uid, wrong);
  const before = beforeOf(request)?.metadata.labels;
  const { labels } = pod.metadata;
  const isNew = before === undefined || !isDeepStrictEqual(before, labels);
  // the API server tells nobody the same twice
  return admitForeign(admission, request, pod, isNew ? warningsOfLabels(admission.context.view, labels) : []);
}

async function objection(
  admission: AdmissionContext,
  request: AdmissionRequest,
  pod: KubeObject,
): Promise<Refusal | undefined> {
  // a rehearsal gives the pod no claim
  if (request.operation === "CREATE") {
    return request.dryRun || (await onlyForeign(admission, pod))
      ? undefined
      : await missingClaim(admission, pod);
  }
  const before = objectOf(request, "oldObject");
  if (isRefusal(before)) return before;
  // a server-side apply that drops the request drops what its manager brought in with it: who wrote neither is told of his own change
  const known = { ...admission.context, dialects: admission.dialects };
  return changed(known, before, pod) ?? assignedChanged(before, pod);
}
