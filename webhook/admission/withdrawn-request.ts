// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { type Template, templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { readRequest } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Request, requestsAddress } from "../../allocator/model/address-request.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { firstOf } from "./scale-down.ts";

/**
 * What becomes of the ordinals' addresses when a StatefulSet names none any more. `told` by the dry runs of its ordinals,
 * if they would have other addresses, or are asked for.
 */
export function toldOfWithdrawal(
  view: Pick<RecordReader, "claims">,
  before: KubeObject,
  { workload, request, exempt }: Template,
  told: readonly string[],
): string[] {
  const was = readRequest(templateAnnotations(before));
  if (isRefusal(was) || !requestsAddress(was)) return [];
  const consequence = consequenceOf(was, exempt ? {} : request);
  if (consequence === undefined || told.length > 0) return [];
  const left: Claim[] = [];
  for (const { record } of view.claims()) {
    const { identity, namespace } = record;
    const its =
      identity.kind === "StatefulSet" && identity.name === workload.name && namespace === workload.namespace;
    const counts = record.handMade !== true && record.releasing !== true && record.addresses.length > 0;
    if (its && counts && identity.ordinal !== undefined && neededBy(workload, identity) === "needed")
      left.push(record);
  }
  return firstOf(
    left
      .toSorted((a, b) => (a.identity.ordinal ?? 0) - (b.identity.ordinal ?? 0))
      .map(({ name, addresses }) => `${name} keeps ${addresses.join(" and ")}${consequence}`),
  );
}

function consequenceOf(was: Request, now: Request): string | undefined {
  if (!requestsAddress(now)) return " until its pod is created again, which asks for no address of berth";
  const anyWillDo = now.entries === undefined && now.pools === undefined;
  return was.entries !== undefined && anyWillDo ? ", which its claim has already" : undefined;
}
