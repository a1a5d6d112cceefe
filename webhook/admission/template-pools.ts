// SPDX-License-Identifier: Apache-2.0
// Whether pools serve the pods of a template for which nothing is reserved in advance.

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal, type RefusalCode } from "../../allocator/base/errors.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { podTemplate, templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { claimKey, isReserved } from "../../allocator/model/claim.ts";
import { planAddresses } from "../../allocator/planning/address-plan.ts";
import type { AddressConstraints } from "../../allocator/planning/plan.ts";
import { partOf } from "../../allocator/planning/pool-sources.ts";
import { matches } from "../../allocator/pool/label-selector.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { disclosed } from "./disclosure.ts";
import { withPoolsOfTemplate } from "./pool-access.ts";
import { beforeOf } from "./unknown-keys.ts";

/** As things stand; another pod's end changes it, and often one of the workload's own. */
const WHILE_IN_USE: ReadonlySet<RefusalCode> = new Set(["ADDRESS_TAKEN", "POOL_EXHAUSTED", "LIMIT_REACHED"]);
/** A pool that is made or opened changes it. Files are applied in any order. */
const UNTIL_A_POOL_CHANGES: ReadonlySet<RefusalCode> = new Set(["POOL_UNKNOWN", "POOL_DISABLED"]);

/**
 * Warnings of what each pod would be refused for now, or why none of them will ever start.
 *
 * | the request contradicts itself, or its pools have no such family or address | refused                      |
 * | a pool is not open to the namespace, an address is in no pool               | refused; a warning for who may not know which of these it is, as their difference tells where pools are |
 * | a pool that is not there, is disabled, or takes other pods                  | a warning                    |
 * | addresses that are in use                                                   | a warning, when it is asked for |
 *
 * A change that leaves the template as it was is not refused: it may be what helps.
 */
export async function judgePools(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  plain: readonly AllocationRequest[],
): Promise<string[] | Refusal> {
  const { view } = admission.context;
  const allocations = await withPoolsOfTemplate(admission, object, plain);
  const verdict = () => verdictOn(view, allocations, changeOf(request, object));
  const first = verdict();
  // who is refused is asked about again by `retryWhenFresh`
  const stale = first?.isWarning === true && (await admission.catchUp?.()) === true;
  const { refusal, isWarning } = (stale ? verdict() : first) ?? {};
  if (refusal === undefined) return [];
  const { userInfo: user, namespace } = request;
  const shown = await disclosed({ view, access: admission.readAccess }, { user, namespace }, refusal);
  const isWithheld = shown !== refusal && shown.code === "POOL_FORBIDDEN";
  if (isWarning !== true && !isWithheld) return refusal;
  return [`the pods of this ${object.kind} would be refused now: ${shown.message}`];
}

interface Change {
  /** Addresses are asked for that were not before. */
  readonly asksAnew: boolean;
  /** The pods are others than before. */
  readonly isNew: boolean;
}

function changeOf(request: AdmissionRequest, object: KubeObject): Change {
  const before = beforeOf(request);
  if (before === undefined) return { asksAnew: true, isNew: true };
  return {
    asksAnew: !isDeepStrictEqual(templateAnnotations(before), templateAnnotations(object)),
    isNew: !isDeepStrictEqual(podTemplate(before).value, podTemplate(object).value),
  };
}

function verdictOn(
  view: RecordReader,
  allocations: readonly AllocationRequest[],
  { asksAnew, isNew }: Change,
): { readonly refusal: Refusal; readonly isWarning: boolean } | undefined {
  const found = allocations.flatMap((allocation) => {
    const refusal = objectionTo(view, allocation);
    if (refusal === undefined || (WHILE_IN_USE.has(refusal.code) && !asksAnew)) return [];
    return [{ refusal, isWarning: !isNew || mayPass(view, refusal, allocation.constraints) }];
  });
  return found.find(({ isWarning }) => !isWarning) ?? found[0];
}

/** What a pod of that request would be told, by what is known here: nothing is read, and nothing written. */
function objectionTo(view: RecordReader, { key, constraints }: AllocationRequest): Refusal | undefined {
  const claim = view.claim(claimKey(key))?.record;
  const own = claim !== undefined && isReserved(claim) ? { ownAddresses: claim.addresses } : {};
  const plan = planAddresses(view, { ...constraints, ...own });
  if (isRefusal(plan)) return plan;
  for (const { exact, candidates, exhausted } of plan.familyPlans) {
    const [candidate] = candidates; // there may be very many more
    const isTaken = exact && candidate !== undefined && view.reservation(candidate.address) !== undefined;
    if (candidate === undefined || isTaken) return exhausted();
  }
  return undefined;
}

function mayPass(view: RecordReader, { code }: Refusal, constraints: AddressConstraints): boolean {
  if (WHILE_IN_USE.has(code) || UNTIL_A_POOL_CHANGES.has(code)) return true;
  // labels of pods and rights of service accounts may be added by others
  return code === "POOL_FORBIDDEN" && !isClosedTo(view, constraints);
}

/** One of the named pools is not open to the namespace, or none is. */
function isClosedTo(view: RecordReader, { addresses, pools, namespaceLabels }: AddressConstraints): boolean {
  const isClosed = ({ spec: { namespaceSelector } }: Pool) =>
    namespaceSelector !== undefined && !matches(namespaceSelector, namespaceLabels);
  const all = view.pools();
  if (addresses !== undefined)
    return addresses.some((address) => all.some((pool) => pool === view.poolOf(address) && isClosed(pool)));
  if (pools === undefined) return all.every(isClosed);
  return pools.some((name) => all.some((pool) => partOf(pool, name) !== undefined && isClosed(pool)));
}
