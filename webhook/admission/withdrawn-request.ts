// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import {
  readTemplate,
  type Template,
  templateAnnotations,
} from "../../allocator/demand/workload-allocation.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Request, requestsAddress } from "../../allocator/model/address-request.ts";
import type { NamespaceState } from "../../allocator/model/cluster-state.ts";
import { isFollowed } from "../../allocator/model/workload-kinds.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { ownOf } from "./foreign-review.ts";
import { claimsOfOrdinals, firstOf } from "./scale-down.ts";

/** Of a template that asked for addresses, and asks no more. `told` of the change otherwise. */
export async function warningsOfWithdrawal(
  admission: AdmissionContext,
  before: KubeObject,
  now: { readonly object: KubeObject; readonly space: NamespaceState; readonly template: Template },
  warnings: readonly string[],
): Promise<string[]> {
  const { object, space, template } = now;
  const { context, inventory } = admission;
  const { annotations, namespace } = await ownOf(admission, templateAnnotations(before), space);
  const was = readTemplate({ ...context, nodes: inventory.nodes }, before, namespace, annotations);
  if (isRefusal(was) || was.exempt || !requestsAddress(was.request)) return [];
  const request = template.exempt ? {} : template.request;
  if (object.kind === "StatefulSet" && isFollowed(object.apiVersion, object.kind))
    return warnings.length > 0
      ? []
      : warningsOfOrdinals(context.view, template, consequenceOf(was.request, request));
  if (requestsAddress(request)) return [];
  return [
    `the next pods of this ${object.kind} ask for no address of berth; those that are there keep theirs until they are gone`,
  ];
}

/**
 * What becomes of the ordinals' addresses when a StatefulSet names none any more. The dry runs of its ordinals tell it,
 * if they would have other addresses, or are asked for.
 */
function warningsOfOrdinals(
  view: Pick<RecordReader, "claims">,
  { workload }: Template,
  consequence: string | undefined,
): string[] {
  if (consequence === undefined) return [];
  const left = claimsOfOrdinals(view, workload).filter(
    ({ addresses, identity }) => addresses.length > 0 && neededBy(workload, identity) === "needed",
  );
  return firstOf(left.map(({ name, addresses }) => `${name} keeps ${addresses.join(" and ")}${consequence}`));
}

function consequenceOf(was: Request, now: Request): string | undefined {
  if (!requestsAddress(now)) return " until its pod is created again, which asks for no address of berth";
  const anyWillDo = now.entries === undefined && now.pools === undefined;
  return was.entries !== undefined && anyWillDo ? ", which its claim has already" : undefined;
}
