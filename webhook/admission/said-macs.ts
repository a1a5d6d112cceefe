// SPDX-License-Identifier: Apache-2.0

import type { PodAllocation } from "../../allocator/demand/pod-allocation.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { entryObjection } from "../../allocator/manifest/mac-annotations.ts";

/** Of a list the entries whose MAC addresses are not those that the pod's networks say are none for this pod. */
export function withMacsSaid(
  { metadata: { annotations } }: KubeObject,
  podAllocation: PodAllocation,
): PodAllocation {
  if (podAllocation.kind === "own") return podAllocation;
  const objection = entryObjection(annotations);
  const requests = podAllocation.requests.map((slot) => {
    const { entry: addresses = [], interfaces } = slot.constraints;
    const unfit = objection({ addresses, request: {}, ...(interfaces && { interfaces }) });
    return unfit === undefined ? slot : { ...slot, unfit };
  });
  return { ...podAllocation, requests };
}
