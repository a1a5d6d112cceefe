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
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { judgePools } from "./template-pools.ts";
import { judgeNetworks, judgeUnread, unfitOf } from "./unfit-entries.ts";

/**
 * Of a workload that Berth does not read nothing is kept but what its pods have: said here, where its author reads it, and
 * what its pods would be refused for.
 */
export async function considerUnread(
  admission: AdmissionContext,
  asked: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const { request, exempt, inputOf } = template;
  if (!requestsAddress(request) || exempt) return [];
  const strange = judgeNetworks(asked, object, template);
  if (isRefusal(strange)) return strange;
  const { podIdentity, owner } = identityOfPods(ownerOf(object), lastIndexOf(object));
  const isSet = podIdentity.kind === "set" && request.entries !== undefined;
  const resolved = isSet
    ? slotRequests(inputOf(podIdentity), podIdentity.workload)
    : requestFor(inputOf(podIdentity));
  if (isRefusal(resolved)) return resolved;
  const allocations = [resolved].flat();
  const unfit = judgeUnread(asked, object, [...beforeLast(object, template), ...allocations]);
  if (isRefusal(unfit)) return unfit;
  const unserved = await judgePools(admission, asked, object, allocations);
  if (isRefusal(unserved)) return unserved;
  const isToldMore = unserved.length > 0 || podIdentity.kind === "named";
  const listed = request.entries?.length;
  const fit = listed && listed - unfitOf(object, allocations).length;
  const few = isToldMore || unfit.length > 0 ? [] : tooFew(object, { listed, fit });
  return [
    ...strange,
    ...unfit,
    ...few,
    ...unserved,
    ...notKept({ podIdentity, request, ...(owner === undefined ? {} : { owner }) }),
  ];
}

/** Of a Job whose pods have an entry each, by their index: those before the last one. */
function beforeLast(
  object: KubeObject,
  { request: { entries = [] }, inputOf }: Template,
): AllocationRequest[] {
  const indexes =
    entries.length < 2 ? [] : Array.from({ length: lastIndexOf(object) ?? 0 }, (_, index) => index);
  return indexes.flatMap((index) => {
    const one = requestFor(inputOf(identityOfPods(ownerOf(object), index).podIdentity));
    return isRefusal(one) ? [] : one;
  });
}

interface Entries {
  readonly listed: number | undefined;
  /** Those that its pods can have, by the MAC addresses that their networks say. */
  readonly fit: number | undefined;
}

/** Of a list with less entries than pods that are to run at once: the others are refused until one is gone. */
function tooFew(object: KubeObject, { listed, fit = listed }: Entries): string[] {
  if (listed === undefined || fit === undefined) return [];
  const { kind } = object;
  const pods = podsAtOnce(object);
  if (pods !== undefined && pods <= fit) return [];
  const many = pods === undefined ? "a pod on each node" : `${counted(pods, "pod")} at once`;
  const which = fit === listed ? "" : ` (of ${listed}) with the MAC address that the pods' networks say`;
  const words = `the list has ${counted(fit, "entry", "entries")}${which} for ${many}: the pods without one are refused until another is gone`;
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
