// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import {
  type Template,
  templateAnnotations,
  templateLabels,
} from "../../allocator/demand/workload-allocation.ts";
import { EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { warningsOfUnwritten, withMacs } from "../../allocator/manifest/mac-annotations.ts";
import {
  idleRequests,
  requestsOfHost,
  requestsOfSystem,
  writtenByOthers,
} from "../../allocator/manifest/own-keys.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import { parseMacs } from "../../allocator/model/interface-macs.ts";
import { formatAddresses } from "../../allocator/model/interfaces.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { warningsOfLabels } from "./stray-labels.ts";

/** Of what the first of its pods is to have by name: its runtime has to know, and nobody reads what its pods are told. */
export function warningsOfMacs(
  { request: { entries: [entry] = [], interfaces } }: Template,
  object: KubeObject,
): readonly string[] {
  if (entry === undefined) return [];
  return warningsOfUnwritten(
    withMacs(templateAnnotations(object), parseMacs(formatAddresses(entry, interfaces))).unwritten,
  );
}

/** What Berth writes into pods asks for no address in a template either, nor on the object. */
export function idleInTemplate(
  { context, dialects }: AdmissionContext,
  object: KubeObject,
  { template: { request, exempt }, own }: { readonly template: Template; readonly own: Labels },
): readonly string[] {
  const labels = warningsOfLabels(context.view, templateLabels(object));
  if (exempt && object.metadata.namespace === EXEMPT_NAMESPACE)
    return requestsOfSystem(templateAnnotations(object));
  if (exempt) return [...labels, ...requestsOfHost(templateAnnotations(object), dialects)];
  if (requestsAddress(request)) return labels;
  return [
    ...labels,
    ...idleRequests(own),
    ...writtenByOthers(templateAnnotations(object), "are removed from its pods"),
    ...writtenByOthers(object.metadata.annotations, `do nothing on a ${object.kind}`),
  ];
}
