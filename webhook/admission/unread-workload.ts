// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { requestFor } from "../../allocator/demand/build-request.ts";
import { identityOfPods, notKept } from "../../allocator/demand/unkept-requests.ts";
import { lastIndexOf, ownerOf, type Template } from "../../allocator/demand/workload-allocation.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";

/** Of a workload that Berth does not read nothing is kept but what its pods have: said here, where its author reads it. */
export function considerUnread(
  object: KubeObject,
  { request, exempt, inputOf }: Template,
): string[] | Refusal {
  if (!requestsAddress(request) || exempt) return [];
  const { podIdentity, owner } = identityOfPods(ownerOf(object), lastIndexOf(object));
  const resolved = podIdentity.kind === "set" ? undefined : requestFor(inputOf(podIdentity));
  return isRefusal(resolved)
    ? resolved
    : notKept({ podIdentity, request, ...(owner === undefined ? {} : { owner }) });
}
