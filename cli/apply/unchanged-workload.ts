// SPDX-License-Identifier: Apache-2.0
// What an update makes of a workload that is there: admission does not judge anew what it leaves as it is.

import { isDeepStrictEqual } from "node:util";
import { templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import { type KubeObject, workloadState } from "../../allocator/manifest/kubernetes-object.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import { UNREAD } from "../../webhook/review/json.ts";
import type { Backend } from "../backend/backend.ts";

/**
 * By the spec, as admission compares it, of which an API server has more than somebody wrote. On hosts `apply` sends also what has other
 * labels or annotations, and all that is sent is judged.
 */
export function isThereSo(object: KubeObject, there: KubeObject, place: Backend["place"]): boolean {
  const isSame = (read: (one: KubeObject) => unknown) => isDeepStrictEqual(read(there), read(object));
  return (
    isSameGroup(object.apiVersion, there.apiVersion) &&
    isSame(templateAnnotations) &&
    replicasAfter(object, there, place) === workloadState(there).replicas &&
    isWithin(object.spec.value, there.spec.value) &&
    (place === "cluster" || isSame(({ metadata }) => [metadata.labels, metadata.annotations]))
  );
}

/** In a cluster it keeps as many as it has, as an autoscaler left it, where the file does not say how many. */
export function replicasAfter(
  object: KubeObject,
  there: KubeObject | undefined,
  place: Backend["place"],
): number {
  const isKept = place === "cluster" && there !== undefined && object.spec.get("replicas") === undefined;
  return workloadState(isKept ? there : object).replicas;
}

/** `there` is null for what a review leaves out and does not keep. */
function isWithin(said: unknown, there: unknown): boolean {
  if (there === null) return true;
  if (said === null) return there === undefined;
  if (typeof said !== "object" || typeof there !== "object") return said === there;
  if (Array.isArray(said) !== Array.isArray(there)) return false;
  if (Array.isArray(said) && said.length !== Object.keys(there).length) return false;
  const all = new Map<string, unknown>(Object.entries(there));
  return Object.entries(said).every(([key, one]) => UNREAD.includes(key) || isWithin(one, all.get(key)));
}
