// SPDX-License-Identifier: Apache-2.0
// Pools that no node is of at the moment: a pod with an address of one stays Pending, and an autoscaler may add a node.

import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../../allocator/base/errors.ts";
import { poolsContaining } from "../../allocator/cache/reader.ts";
import { requestFor } from "../../allocator/demand/build-request.ts";
import { ownerOf, podTemplate, type Template } from "../../allocator/demand/workload-allocation.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import type { PodNodes } from "../../allocator/model/node-terms.ts";
import { planAddresses } from "../../allocator/planning/address-plan.ts";
import { withoutNodeNow } from "../../allocator/planning/node-fit.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { ALL_POOLS } from "./disclosure.ts";
import { withPoolsOfTemplate } from "./pool-access.ts";
import { beforeOf } from "./unknown-keys.ts";

/** A warning for the pod that has, or would have, these addresses; none, where a node is of their pools or nodes are not known. */
export async function warningsOfNodes(
  admission: AdmissionContext,
  { userInfo }: AdmissionRequest,
  nodes: PodNodes | undefined,
  addresses: readonly Address[],
): Promise<string[]> {
  const words = withoutNodeNow(nodes, poolsContaining(admission.context.view, addresses));
  if (words === undefined) return [];
  const { readAccess } = admission;
  const mayRead = readAccess === undefined || (await readAccess.mayRead(userInfo, ALL_POOLS));
  if (mayRead) return [words];
  return ["no node where the pod may run is now one of those that its address is for: it stays Pending"];
}

/** The same for the pods of a template that is new: for the first entry of its list that no node is for, or for what any of them would get. */
export async function warningsOfTemplateNodes(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[]> {
  const before = beforeOf(request);
  const isNew = before === undefined || !isDeepStrictEqual(podTemplate(before), podTemplate(object));
  if (!isNew || template.exempt || !requestsAddress(template.request)) return [];
  const identity = ownerOf(object);
  const { nodes } = template.inputOf({ kind: "set", workload: identity.name, identity });
  if (nodes?.known?.() === undefined) return [];
  const entries = template.request.entries ?? [await anyOf(admission, object, template)];
  const nodeless = entries.find(
    (entry) => withoutNodeNow(nodes, poolsContaining(admission.context.view, entry)) !== undefined,
  );
  return nodeless === undefined ? [] : await warningsOfNodes(admission, request, nodes, nodeless);
}

/** What a pod of the template would get that has nothing yet; nothing, where it would be refused: that is said elsewhere. */
async function anyOf(
  admission: AdmissionContext,
  object: KubeObject,
  { inputOf }: Template,
): Promise<readonly Address[]> {
  const identity = ownerOf(object);
  const plain = requestFor(inputOf({ kind: "set", workload: identity.name, identity }));
  if (isRefusal(plain)) return [];
  const [one] = await withPoolsOfTemplate(admission, object, [plain]);
  const plan = one === undefined ? undefined : planAddresses(admission.context.view, one.constraints);
  if (plan === undefined || isRefusal(plan)) return [];
  return plan.familyPlans.flatMap(({ candidates }) => {
    const [first] = candidates; // there may be very many more
    return first === undefined ? [] : [first.address];
  });
}
