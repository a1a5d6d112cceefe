// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Template } from "../../allocator/demand/workload-allocation.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
} from "../review/admission-review.ts";
import { type AdmissionContext, type ObjectStore, objectOf } from "./admission-context.ts";
import { consider } from "./considered-workload.ts";
import { takeOverOrdinals } from "./ordinal-claims.ts";

export async function considerAndKeep(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const objects = admission.embedded;
  if (objects === undefined || request.dryRun) return await consider(admission, request, object, template);
  const { apiVersion, kind, metadata } = object;
  const before = await admission.inventory.workload({ apiVersion, kind, ...metadata });
  const reviewed = objects.expect?.(object);
  try {
    const warnings = await consider(admission, request, object, template);
    if (isRefusal(warnings)) return warnings;
    await objects.keep(object);
    enqueueClaimsOf(admission, object);
    reviewed?.(); // what is kept counts from here
    // Claims that exist change by what is kept, and not by a review (ADR 0007).
    const changed = !isDeepStrictEqual(before, template.workload);
    return [...new Set([...warnings, ...(await takeOverOrdinals(admission, object, template, changed))])];
  } finally {
    reviewed?.();
  }
}

function enqueueClaimsOf(admission: AdmissionContext, object: KubeObject): void {
  const { kind, metadata } = object;
  for (const { record } of admission.context.view.claims({ kind, ...metadata })) {
    const { identity, namespace } = record;
    const its = identity.kind === kind && identity.name === metadata.name;
    if (its && namespace === metadata.namespace) admission.enqueueForGc(record);
  }
}

export async function workloadGone(
  admission: AdmissionContext,
  request: AdmissionRequest,
): Promise<AdmissionResponse> {
  if (request.dryRun || admission.embedded === undefined) return allowed(request.uid);
  const old = objectOf(request, "oldObject");
  if (isRefusal(old)) return denied(request.uid, old);
  await forget(admission, admission.embedded, old);
  return allowed(request.uid);
}

async function forget(admission: AdmissionContext, objects: ObjectStore, object: KubeObject): Promise<void> {
  await objects.forget(object.kind, object.metadata.namespace, object.metadata.name);
  enqueueClaimsOf(admission, object);
}
