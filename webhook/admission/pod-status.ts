// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../allocator/base/errors.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, objectOf } from "./admission-context.ts";

/** On the embedded stack this is where it is heard that a pod has ended while its object stays. */
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
  suspectClaimsOf(admission, namespace, name);
  return allowed(request.uid);
}

/** Its pod is gone, or has ended. */
export function suspectClaimsOf(admission: AdmissionContext, namespace: string, name: string): void {
  for (const { record } of admission.context.view.claims()) {
    const its = record.namespace === namespace && (record.name === name || record.binding?.podName === name);
    if (its) admission.suspect(record);
  }
}
