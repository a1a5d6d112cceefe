// SPDX-License-Identifier: Apache-2.0

/** Faults that pass by themselves; nobody can do anything about them at a pod or a workload. */
export const PASSING: ReadonlySet<string> = new Set([
  "STORE_UNAVAILABLE",
  "TIMED_OUT",
  "REVISION_CONFLICT",
  "NOT_READY",
]);
