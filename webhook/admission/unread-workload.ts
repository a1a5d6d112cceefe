// SPDX-License-Identifier: Apache-2.0
import { counted } from "../../allocator/base/counted.ts";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { requestFor, slotRequests } from "../../allocator/demand/build-request.ts";
import { identityOfPods, notKept } from "../../allocator/demand/unkept-requests.ts";
import {
  isJob,
  jobSpec,
  lastIndexOf,
  ownerOf,
  type Template,
} from "../../allocator/demand/workload-allocation.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { judgePools } from "./template-pools.ts";

/**
 * Of a workload that Berth does not read nothing is kept but what its pods have: said here, where its author reads it, and
 * what its pods would be refused for.
 */
export async function considerUnread(
  admission: AdmissionContext,
  asked: AdmissionRequest,
  object: KubeObject,
  { request, exempt, inputOf }: Template,
): Promise<string[] | Refusal> {
  if (!requestsAddress(request) || exempt) return [];
  const { podIdentity, owner } = identityOfPods(ownerOf(object), lastIndexOf(object));
  const isSet = podIdentity.kind === "set" && request.entries !== undefined;
  const resolved = isSet
    ? slotRequests(inputOf(podIdentity), podIdentity.workload)
    : requestFor(inputOf(podIdentity));
  if (isRefusal(resolved)) return resolved;
  const unserved = await judgePools(admission, asked, object, [resolved].flat());
  if (isRefusal(unserved)) return unserved;
  const isToldMore = unserved.length > 0 || podIdentity.kind === "named";
  const few = isToldMore ? [] : tooFew(object, request.entries?.length);
  return [
    ...few,
    ...unserved,
    ...notKept({ podIdentity, request, ...(owner === undefined ? {} : { owner }) }),
  ];
}

/** Of a list with less entries than pods that are to run at once: the others are refused until one is gone. */
function tooFew(object: KubeObject, entries: number | undefined): string[] {
  if (entries === undefined) return [];
  const { kind } = object;
  const pods = podsAtOnce(object);
  if (pods !== undefined && pods <= entries) return [];
  const many = pods === undefined ? "a pod on each node" : `${counted(pods, "pod")} at once`;
  const words = `the list has ${counted(entries, "entry", "entries")} for ${many}: the pods without one are refused until another is gone`;
  if (kind === "DaemonSet") return [`${words}; ask by berth.dev/pools`];
  return isJob(object)
    ? [
        `${words}; lower parallelism, ask by berth.dev/pools, or write completionMode: Indexed and an entry for each index`,
      ]
    : [`${words}; lower replicas, or ask by berth.dev/pools`];
}

/** Undefined: as many as there are nodes for. */
function podsAtOnce(object: KubeObject): number | undefined {
  if (object.kind === "DaemonSet") return undefined;
  if (!isJob(object)) return object.spec.count("replicas", 1);
  const spec = jobSpec(object);
  const parallelism = spec.count("parallelism", 1);
  return Math.min(parallelism, spec.count("completions", parallelism));
}
