// SPDX-License-Identifier: Apache-2.0

/** What tells the pods of a workload apart. */
type Place = "ordinal" | "slot";

/** The workloads that Berth reads. What owns a pod and is not among them is unknown: only its pods can be seen. */
export const FOLLOWED: readonly { readonly group: string; readonly kind: string; readonly place: Place }[] = [
  { group: "apps", kind: "StatefulSet", place: "ordinal" },
  { group: "apps", kind: "Deployment", place: "slot" },
  { group: "apps.kruise.io", kind: "StatefulSet", place: "ordinal" },
  { group: "apps.kruise.io", kind: "CloneSet", place: "slot" },
  { group: "batch", kind: "Job", place: "ordinal" },
];

/** `apps` of `apps/v1`; empty for the core group, whose version stands alone. */
export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? "" : apiVersion.slice(0, slash);
}

/** Whether both are of one group. A record that does not say its group may be of any. */
export function isSameGroup(a: string, b: string): boolean {
  return a === "" || b === "" || groupOf(a) === groupOf(b);
}

/** Whether workloads of that group and kind are read. */
export function isFollowed(apiVersion: string, kind: string): boolean {
  return FOLLOWED.some(
    (one) => one.kind === kind && (apiVersion === "" || one.group === groupOf(apiVersion)),
  );
}

/** The kinds of those whose pods share a list. Only the group of the version counts. */
export function slotKinds(): readonly { readonly apiVersion: string; readonly kind: string }[] {
  const sets = FOLLOWED.filter(({ place }) => place === "slot");
  return sets.map(({ group, kind }) => ({ apiVersion: `${group}/v1`, kind }));
}
