// SPDX-License-Identifier: Apache-2.0
// Entries of a list that no pod of a template can have, since its networks say another MAC address. What was let through when it was asked for
// is a warning later on: a change of something else may be what helps.

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { withUnfit } from "../../allocator/demand/said-macs.ts";
import { type Template, templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { type KubeObject, workloadState } from "../../allocator/manifest/kubernetes-object.ts";
import { strangeMac } from "../../allocator/manifest/mac-annotations.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import { checkRollout } from "./rollout.ts";
import { firstOf } from "./scale-down.ts";
import { beforeOf } from "./unknown-keys.ts";

/** Of a MAC address that is none of those that are asked for: none of the pods can start. */
export function judgeNetworks(
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): string[] | Refusal {
  const strange = strangeMac(templateAnnotations(object), template.request.interfaces);
  if (strange === undefined) return [];
  return askedBefore(request, object) === undefined ? strange : [refusedStill(object, strange)];
}

/** Of a StatefulSet, whose pods have each an entry of their own. */
export function judgeOrdinals(
  request: AdmissionRequest,
  object: KubeObject,
  allocations: readonly AllocationRequest[],
): string[] | Refusal {
  const before = askedBefore(request, object);
  const was = before && workloadState(before);
  const keepsPlaces = was?.start === workloadState(object).start; // else an ordinal has another entry
  const warnings: string[] = [];
  for (const { key, identity, unfit } of withUnfit(templateAnnotations(object), allocations)) {
    if (unfit === undefined) continue;
    const words = `pod ${key.name}: ${unfit.message}`;
    const wasThere = keepsPlaces && was !== undefined && neededBy(was, identity) === "needed";
    if (!wasThere) return { ...unfit, message: words };
    warnings.push(`it is refused as before: ${words}`);
  }
  return firstOf(warnings);
}

/** Of pods that Berth does not read: each has the entry of its index, or else any, of which one must be for them. */
export function judgeUnread(
  request: AdmissionRequest,
  object: KubeObject,
  allocations: readonly AllocationRequest[],
): string[] | Refusal {
  const [unfit, ...others] = unfitOf(object, allocations);
  if (unfit?.unfit === undefined) return [];
  const { ordinal } = unfit.identity;
  if (ordinal === undefined && others.length + 1 < allocations.length) return [];
  const message =
    ordinal === undefined ? unfit.unfit.message : `pod of index ${ordinal}: ${unfit.unfit.message}`;
  const refusal = { ...unfit.unfit, message };
  return askedBefore(request, object) === undefined ? refusal : [refusedStill(object, refusal)];
}

/** Those that none of its pods can have, each with why. */
export function unfitOf(
  object: KubeObject,
  allocations: readonly AllocationRequest[],
): readonly AllocationRequest[] {
  return withUnfit(templateAnnotations(object), allocations).filter(({ unfit }) => unfit !== undefined);
}

/** Whether a set has as many entries as pods that may live at once, of which each takes any that it can have. */
export function judgeSize(
  request: AdmissionRequest,
  object: KubeObject,
  slots: readonly AllocationRequest[],
): string[] | Refusal {
  const { replicas } = workloadState(object);
  const unfit = unfitOf(object, slots).flatMap((slot) => slot.unfit ?? []);
  const count = { replicas, fit: slots.length - unfit.length, listed: slots.length };
  return judgeCount(askedBefore(request, object), object, count, unfit[0]);
}

interface Count {
  readonly replicas: number;
  /** Entries that its pods can have. */
  readonly fit: number;
  readonly listed: number;
}

/** `before` is as it was, where its pods' annotations were the same; `unfit`: why it cannot have one of the others. */
export function judgeCount(
  before: KubeObject | undefined,
  object: KubeObject,
  { replicas, fit, listed }: Count,
  unfit?: Refusal,
): string[] | Refusal {
  const all = checkRollout(object, replicas, listed);
  if (fit === listed || isRefusal(all)) return all;
  const judge = (one: KubeObject, pods: number) =>
    fit === 0 && unfit !== undefined ? unfit : checkRollout(one, pods, fit, listed);
  const enough = judge(object, replicas);
  if (!isRefusal(enough)) return enough;
  if (before === undefined) return enough;
  const was = workloadState(before).replicas;
  const wasThere = was >= replicas && isRefusal(judge(before, was));
  return wasThere ? [...all, refusedStill(object, enough)] : enough;
}

/** As it was, where its pods' annotations were the same. */
function askedBefore(request: AdmissionRequest, object: KubeObject): KubeObject | undefined {
  return ifAsksTheSame(beforeOf(request), object);
}

export function ifAsksTheSame(before: KubeObject | undefined, object: KubeObject): KubeObject | undefined {
  const isSame =
    before !== undefined && isDeepStrictEqual(templateAnnotations(before), templateAnnotations(object));
  return isSame ? before : undefined;
}

function refusedStill({ kind }: KubeObject, { message }: Refusal): string {
  return `pods of this ${kind} are refused as before: ${message}`;
}
