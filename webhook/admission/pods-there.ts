// SPDX-License-Identifier: Apache-2.0

import { inParallel } from "../../allocator/base/parallel.ts";
import { type ClaimKey, claimKey } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";

/** Of each whether its pod is there; undefined: not known. */
export type PodsThere = (pods: readonly ClaimKey[]) => Promise<ReadonlyMap<string, boolean | undefined>>;

/** Pods that are looked up at most by one review. */
const MOST_PODS = 128;
/** So many at a time: the API server is asked for each, a review has few seconds, and others ask it too. */
const AT_ONCE = 16;

/**
 * What is ending is not there any more: its successor asks by the new list. On one host a pod may run that nobody has applied there.
 * Each is looked up once, however often a decision that is read ahead asks.
 */
export function podsThere(inventory: Pick<ClusterState, "pod" | "admittedWith">): PodsThere {
  const found = new Map<string, boolean | undefined>();
  const lookUp = async ({ namespace, name }: ClaimKey) => {
    const pod = await inventory.pod(namespace, name);
    if (pod !== undefined) return !pod.ended && pod.deleting !== true;
    return inventory.admittedWith === undefined ? undefined : false;
  };
  return async (pods) => {
    const asked = pods.filter((key) => !found.has(claimKey(key))).slice(0, MOST_PODS - found.size);
    await inParallel(asked, AT_ONCE, async (key) => found.set(claimKey(key), await lookUp(key)));
    return found;
  };
}
