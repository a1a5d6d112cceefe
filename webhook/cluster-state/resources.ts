// SPDX-License-Identifier: Apache-2.0
import type { Resource } from "../../kube/api/resource.ts";

export const PODS: Resource = { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true };

export const NODES: Resource = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };

export const NAMESPACES: Resource = {
  group: "",
  version: "v1",
  plural: "namespaces",
  kind: "Namespace",
  namespaced: false,
};

/** Workloads of Kubernetes itself: always served. */
export const APPS: readonly Resource[] = [
  { group: "apps", version: "v1", plural: "statefulsets", kind: "StatefulSet", namespaced: true },
  { group: "apps", version: "v1", plural: "deployments", kind: "Deployment", namespaced: true },
];

/** Read one by one, and never watched. */
export const JOBS: Resource = {
  group: "batch",
  version: "v1",
  plural: "jobs",
  kind: "Job",
  namespaced: true,
};

/** OpenKruise's: served where it is installed. */
export const KRUISE: readonly Resource[] = [
  {
    group: "apps.kruise.io",
    version: "v1beta1",
    plural: "statefulsets",
    kind: "StatefulSet",
    namespaced: true,
  },
  { group: "apps.kruise.io", version: "v1alpha1", plural: "clonesets", kind: "CloneSet", namespaced: true },
];
