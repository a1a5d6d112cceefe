// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { requestFor, slotRequests } from "../../allocator/demand/build-request.ts";
import { identityOfPods, notKept } from "../../allocator/demand/unkept-requests.ts";
import { lastIndexOf, ownerOf, type Template } from "../../allocator/demand/workload-allocation.ts";
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
  return [...unserved, ...notKept({ podIdentity, request, ...(owner === undefined ? {} : { owner }) })];
}
