// SPDX-License-Identifier: Apache-2.0
// What a pod's networks say of the MAC addresses that it may get.

import type { Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { entryObjection, otherMac, withMacs } from "../manifest/mac-annotations.ts";
import { parseMacs } from "../model/interface-macs.ts";
import { formatAddresses } from "../model/interfaces.ts";
import type { DryRunResult } from "./allocation-dry-run.ts";
import type { PodAllocation } from "./pod-allocation.ts";

/**
 * Of a list the entries whose MAC addresses are not those that the pod's networks say are none for this pod. A pod that has an entry of its
 * own is refused, before anything is reserved for it.
 */
export function withMacsSaid(annotations: Labels, podAllocation: PodAllocation): PodAllocation | Refusal {
  const { kind, requests } = podAllocation;
  if (kind === "anySlot") return { kind, requests: withUnfit(annotations, requests) };
  const [own] = withUnfit(annotations, requests);
  return own?.unfit ?? podAllocation;
}

/** Each with why no pod of these annotations can have it. */
export function withUnfit(
  annotations: Labels,
  requests: readonly AllocationRequest[],
): readonly AllocationRequest[] {
  const objection = entryObjection(annotations);
  return requests.map((slot) => {
    const { addresses = [], interfaces } = slot.constraints;
    const unfit = objection({ addresses, request: {}, ...(interfaces && { interfaces }) });
    return unfit === undefined ? slot : { ...slot, unfit };
  });
}

/** Why a pod would be refused with what it would get. */
export function macObjection(
  annotations: Labels,
  { addresses, interfaces }: DryRunResult,
): Refusal | undefined {
  const got = addresses.map(({ address }) => address);
  const { other } = withMacs(annotations, parseMacs(formatAddresses(got, interfaces)));
  return other.length === 0 ? undefined : otherMac(other);
}
