// SPDX-License-Identifier: Apache-2.0
// What a pod's networks say of the MAC addresses that it may get.

import type { Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { entryObjection, otherMac, withMacs } from "../manifest/mac-annotations.ts";
import { parseMacs } from "../model/interface-macs.ts";
import { formatAddresses } from "../model/interfaces.ts";
import type { DryRunResult } from "./allocation-dry-run.ts";
import type { PodAllocation } from "./pod-allocation.ts";

/** Of a list the entries whose MAC addresses are not those that the pod's networks say are none for this pod. */
export function withMacsSaid(annotations: Labels, podAllocation: PodAllocation): PodAllocation {
  if (podAllocation.kind === "own") return podAllocation;
  const objection = entryObjection(annotations);
  const requests = podAllocation.requests.map((slot) => {
    const { entry: addresses = [], interfaces } = slot.constraints;
    const unfit = objection({ addresses, request: {}, ...(interfaces && { interfaces }) });
    return unfit === undefined ? slot : { ...slot, unfit };
  });
  return { ...podAllocation, requests };
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
