// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { listTooShort } from "../../allocator/demand/build-request.ts";
import { readRequest } from "../../allocator/manifest/annotations.ts";
import { namespaceOf, type WorkloadState } from "../../allocator/model/cluster-state.ts";
import { ordinalFrom } from "../../allocator/model/ordinals.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import { type AdmissionContext, objectOf } from "./admission-context.ts";
import { ownOf } from "./foreign-review.ts";
import { checkScaled } from "./rollout.ts";
import { warningsOfLostOrdinals } from "./scale-down.ts";

/** Of the resources whose `scale` is reviewed. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ["statefulsets", "StatefulSet"],
  ["deployments", "Deployment"],
  ["clonesets", "CloneSet"],
]);

/**
 * What becomes of addresses when somebody scales a workload by its subresource `scale`, as `kubectl scale` does. The review
 * has a Scale (autoscaling/v1), which says how many replicas there are and are to be; the workload is read from the
 * cluster. Nothing is refused here: its pods are reviewed themselves.
 */
export async function warningsOfScale(
  admission: AdmissionContext,
  request: AdmissionRequest,
): Promise<readonly string[]> {
  const kind = KINDS.get(request.resource.resource);
  const [before, now] = [objectOf(request, "oldObject"), objectOf(request, "object")];
  if (kind === undefined || isRefusal(before) || isRefusal(now)) return [];
  const { group, version } = request.resource;
  const { namespace, name } = now.metadata;
  const ref = { apiVersion: `${group}/${version}`, kind, namespace, name };
  const known = await admission.inventory.workload(ref);
  if (typeof known !== "object" || known.hostNetwork) return [];
  const [was, is] = [before, now].map(({ spec }) => ({ ...known, replicas: spec.count("replicas", 0) }));
  if (was === undefined || is === undefined) return [];
  if (is.replicas > was.replicas) return await warningsOfShortList(admission, is);
  return kind === "StatefulSet" ? warningsOfLostOrdinals(admission.context.view, was, is) : [];
}

/** Of a list that does not reach to the last pod, or to those that a rolling update wants beside it. */
async function warningsOfShortList(
  admission: AdmissionContext,
  workload: WorkloadState,
): Promise<readonly string[]> {
  const { kind, namespace, annotations, start, replicas } = workload;
  const space = await namespaceOf(admission.inventory, namespace);
  const own = await ownOf(admission, annotations, space);
  const request = readRequest(own.annotations, own.namespace, "macs");
  if (isRefusal(request) || request.entries === undefined) return [];
  const { entries, fromOrdinalZero } = request;
  if (kind !== "StatefulSet") {
    const enough = checkScaled(workload, replicas, entries.length);
    if (!isRefusal(enough)) return enough;
    return [entries.length < replicas ? withoutEntry(enough) : enough.message];
  }
  const first = fromOrdinalZero === true ? 0 : start;
  const missing = ordinalFrom(workload, first + entries.length);
  return missing === undefined ? [] : [withoutEntry(listTooShort(entries.length, missing, first))];
}

function withoutEntry({ message }: Refusal): string {
  return `${message}; until then the pods without an entry are refused`;
}
