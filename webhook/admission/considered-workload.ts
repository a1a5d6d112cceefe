// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { requestFor, slotRequests } from "../../allocator/demand/build-request.ts";
import { cappedTtl, notKept } from "../../allocator/demand/unkept-requests.ts";
import { ownerOf, type Template } from "../../allocator/demand/workload-allocation.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { warningsOfUnreadOrdinals } from "../../allocator/manifest/reserved-ordinals.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import type { PodIdentity } from "../../allocator/model/identity.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { dryRunAllocations } from "./dry-run-allocations.ts";
import { considerOrdinals } from "./ordinal-claims.ts";
import { withPoolsOfTemplate } from "./pool-access.ts";
import { unheldEntries } from "./rollout.ts";
import { judgePools } from "./template-pools.ts";
import { judgeNetworks, judgeSize } from "./unfit-entries.ts";
import { isNewSize } from "./workload-change.ts";

/** Warnings, or why not. */
export async function consider(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  if (!requestsAddress(template.request) || template.exempt) return [];
  const isStatefulSet = object.kind === "StatefulSet";
  const warnings = await considerPods(admission, request, object, template);
  if (isRefusal(warnings)) return warnings;
  const owner = ownerOf(object);
  const podIdentity: PodIdentity = isStatefulSet
    ? { kind: "named", claim: `${owner.name}-0`, identity: { ...owner, ordinal: 0 } }
    : { kind: "set", workload: owner.name, identity: owner };
  const pods = { podIdentity, owner, request: template.request };
  return [
    ...warnings,
    ...(isStatefulSet ? [...notKept(pods), ...warningsOfUnreadOrdinals(object)] : []),
    ...cappedTtl(admission.context.view, pods),
  ];
}

async function considerPods(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const strange = judgeNetworks(request, object, template);
  if (isRefusal(strange)) return strange;
  const considerThem = object.kind === "StatefulSet" ? considerOrdinals : considerSet;
  const warnings = await considerThem(admission, request, object, template);
  return isRefusal(warnings) ? warnings : [...strange, ...warnings];
}

/** A set must be as long as the pods that live at once, or a rolling update waits for ever. */
async function considerSet(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const { workload, inputOf } = template;
  const { entries } = template.request;
  const identity = ownerOf(object);
  if (entries === undefined) {
    const podIdentity = { kind: "set", workload: identity.name, identity } as const;
    const one = requestFor(inputOf(podIdentity));
    const unserved = isRefusal(one) ? one : await judgePools(admission, request, object, [one]);
    if (isRefusal(unserved)) return unserved;
    return [...unserved, ...notKept({ podIdentity, owner: identity, request: template.request })];
  }
  const plain = slotRequests(inputOf({ kind: "set", workload: identity.name, identity }), identity.name);
  const slots = await withPoolsOfTemplate(admission, object, plain);
  const warnings = await dryRunAllocations(admission, object, slots, { includeResults: false });
  if (!Array.isArray(warnings)) return warnings.refusal;
  const enough = judgeSize(request, object, plain);
  if (isRefusal(enough)) return enough;
  const podIdentity = { kind: "set", workload: identity.name, identity } as const;
  const spare = isNewSize(request, object, workload.replicas)
    ? unheldEntries(admission.context.view, entries, { object, replicas: workload.replicas })
    : [];
  return [
    ...warnings,
    ...enough,
    ...spare,
    ...notKept({ podIdentity, owner: identity, request: template.request }),
  ];
}
