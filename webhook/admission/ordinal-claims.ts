// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { readClaim } from "../../allocator/cache/reader.ts";
import { listTooShort } from "../../allocator/demand/build-request.ts";
import {
  MAX_PRERESERVED_ORDINALS,
  ordinalRequests,
  readTemplate,
  type Template,
  templateAnnotations,
} from "../../allocator/demand/workload-allocation.ts";
import type { AllocationRequest, Reserved } from "../../allocator/lifecycle/allocation-request.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type AddressEntry, requestsAddress } from "../../allocator/model/address-request.ts";
import { type Claim, claimKey, isReserved } from "../../allocator/model/claim.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import { ordinalFrom } from "../../allocator/model/ordinals.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";
import type { Store } from "../../allocator/store/store.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { dryRunAllocations } from "./dry-run-allocations.ts";
import type { EntriesBefore } from "./entry-exchange.ts";
import { ownOf } from "./foreign-review.ts";
import { withPoolsOfTemplate } from "./pool-access.ts";
import { isSlotOfAnother } from "./slot-names.ts";
import { judgeOrdinals } from "./unfit-entries.ts";
import { beforeOf } from "./unknown-keys.ts";

/** Warnings, or why not. On the embedded stack the ordinals are reserved there and then, all or none. */
export async function considerOrdinals(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const { workload } = template;
  const { entries, fromOrdinalZero } = template.request;
  const first = fromOrdinalZero === true ? 0 : workload.start;
  const missing = entries && ordinalFrom(workload, first + entries.length);
  if (missing !== undefined) return listTooShort(entries?.length ?? 0, missing, first);
  if (workload.replicas > MAX_PRERESERVED_ORDINALS) {
    return [
      `addresses of more than ${MAX_PRERESERVED_ORDINALS} replicas are not reserved in advance; each pod reserves its own`,
    ];
  }
  const allocations = await ordinalAllocations(admission, object, template);
  if (isRefusal(allocations)) return allocations;
  const unfit = judgeOrdinals(request, object, allocations);
  if (isRefusal(unfit)) return unfit;
  const slot = await isSlotOfAnother(admission, allocations);
  if (slot !== undefined) return about(slot.name, slot.refusal);
  // Looked at first, so that a refusal leaves claims that would have been changed as they are.
  const before = await entriesBefore(admission, request, object);
  const warnings = await dryRunAllocations(admission, object, allocations, {
    includeResults: request.dryRun,
    before,
  });
  if (!Array.isArray(warnings))
    return warnings.allocation === undefined
      ? warnings.refusal
      : about(warnings.allocation.key.name, warnings.refusal);
  const told = [...unfit, ...warnings];
  if (admission.embedded === undefined || request.dryRun) return told;
  return (await reserveAll(admission, allocations)) ?? told;
}

/**
 * What the list that is changed asked for: a moment after a StatefulSet was made the claims of its ordinals are on their way, and are not in
 * the store yet. On one host they are made in the review.
 */
async function entriesBefore(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<EntriesBefore> {
  const entries = new Map<string, AddressEntry>();
  const before = beforeOf(request);
  if (before === undefined || admission.embedded !== undefined) return entries;
  const was = templateAnnotations(before);
  if (isDeepStrictEqual(was, templateAnnotations(object))) return entries;
  const space = await namespaceOf(admission.inventory, object.metadata.namespace);
  const { annotations, namespace } = await ownOf(admission, was, space);
  const { nodes } = admission.inventory;
  const template = readTemplate({ ...admission.context, nodes }, before, namespace, annotations);
  if (isRefusal(template)) return entries;
  for (const { allocation } of ordinalRequests(before, template)) {
    const entry = isRefusal(allocation) ? undefined : allocation.constraints.addresses;
    if (!isRefusal(allocation) && entry !== undefined) entries.set(claimKey(allocation.key), entry);
  }
  return entries;
}

async function ordinalAllocations(
  admission: AdmissionContext,
  object: KubeObject,
  template: Template,
): Promise<readonly AllocationRequest[] | Refusal> {
  const plain: AllocationRequest[] = [];
  for (const { allocation } of ordinalRequests(object, template)) {
    if (isRefusal(allocation)) return allocation;
    plain.push(allocation);
  }
  return await withPoolsOfTemplate(admission, object, plain);
}

/**
 * After the StatefulSet was kept; what is told is of ordinals that have no address of their own yet. `changed`: it was not
 * there before, or wanted other ordinals.
 */
export async function takeOverOrdinals(
  admission: AdmissionContext,
  object: KubeObject,
  template: Template,
  changed: boolean,
): Promise<string[]> {
  if (!requestsAddress(template.request) || template.exempt || object.kind !== "StatefulSet") return [];
  if (template.workload.replicas > MAX_PRERESERVED_ORDINALS) return [];
  const allocations = await ordinalAllocations(admission, object, template);
  if (isRefusal(allocations)) return [];
  // Two may be applied at once, and a review may take long: whichever is kept has the word, and its own review.
  const { apiVersion, kind } = object;
  const isKept = async () => {
    const kept = await admission.inventory.workload({ apiVersion, kind, ...object.metadata });
    return isDeepStrictEqual(kept, template.workload);
  };
  return await takeOver(admission.context, allocations, { isThere: isKept, changed });
}

/**
 * All or none: what this review made is given back when one of them is refused, unless somebody has come to use it. A
 * pod of the set may be admitted at the same moment, by another replica: what that one made is not given back. A claim
 * that is there stays as it is until the next pod comes (ADR 0007).
 */
async function reserveAll(
  admission: AdmissionContext,
  allocations: readonly AllocationRequest[],
): Promise<Refusal | undefined> {
  const made: Reserved[] = [];
  for (const allocation of allocations) {
    const there = await readClaim(admission.context, claimKey(allocation.key));
    if (there !== undefined && isReserved(there.record)) continue;
    const got = await reserve(admission.context, allocation, "nothing");
    if (isRefusal(got)) {
      for (const { claim } of made) await release(admission.context, claim);
      return about(allocation.key.name, got);
    }
    if (got.made) made.push(got);
  }
  return undefined;
}

function about(pod: string, refusal: Refusal): Refusal {
  return { ...refusal, message: `pod ${pod}: ${refusal.message}` };
}

/**
 * On the embedded stack: a claim of an ordinal's name that was made for another owner, as for a pod without one, becomes
 * the ordinal's with the addresses that it has, as a controller would make it in a cluster. What cannot is told: that
 * ordinal has no address of its own yet.
 */
async function takeOver(
  context: Context,
  allocations: readonly AllocationRequest[],
  { isThere, changed }: { readonly isThere: () => Promise<boolean>; readonly changed: boolean },
): Promise<string[]> {
  const warnings: string[] = [];
  for (const allocation of allocations) {
    if (!(await isToBeTaken(context.store, allocation, changed))) continue;
    if (!(await isThere())) return warnings;
    const got = await reserve(context, { ...allocation, isThere }, "workload");
    if (isRefusal(got) && (await isThere())) warnings.push(got.message);
  }
  return warnings;
}

/**
 * Whether the ordinal's claim is another owner's. One that is the ordinal's own and has no pod is written once more as it
 * is when its StatefulSet is new: a pod by itself of that name, which found no StatefulSet that wants it, may be about to
 * make it its own. That one's write conflicts now, and it looks again.
 */
async function isToBeTaken(store: Store, allocation: AllocationRequest, changed: boolean): Promise<boolean> {
  const change = { kind: "claim", key: claimKey(allocation.key), doing: "its StatefulSet was kept" } as const;
  return await retryOnConflict(store, change, async (there) => {
    if (there === undefined || there.record.handMade === true) return false;
    if (!isOf(there.record, allocation)) return true;
    if (!changed || there.record.binding !== undefined || !isReserved(there.record)) return false;
    const { kind } = await store.replace("claim", there, there.record);
    return kind === "replaced" ? false : kind;
  });
}

function isOf({ identity: its }: Claim, { identity }: AllocationRequest): boolean {
  return its.kind === identity.kind && its.name === identity.name && its.ordinal === identity.ordinal;
}
