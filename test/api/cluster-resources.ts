// SPDX-License-Identifier: Apache-2.0

import type { Resource } from "../../kube/api/resource.ts";

const resource = (group: string, plural: string, kind: string, namespaced = false): Resource => ({
  ...{ group, version: "v1", plural, kind, namespaced },
});

export const QUOTAS = resource("", "resourcequotas", "ResourceQuota", true);

export const POLICIES = resource(
  "admissionregistration.k8s.io",
  "validatingadmissionpolicies",
  "ValidatingAdmissionPolicy",
);

export const POLICY_BINDINGS = resource(
  "admissionregistration.k8s.io",
  "validatingadmissionpolicybindings",
  "ValidatingAdmissionPolicyBinding",
);

export const ROLES = resource("rbac.authorization.k8s.io", "clusterroles", "ClusterRole");
export const CLUSTER_BINDINGS = resource(
  "rbac.authorization.k8s.io",
  "clusterrolebindings",
  "ClusterRoleBinding",
);
export const ROLE_BINDINGS = resource("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", true);
export const STATEFUL_SETS = resource("apps", "statefulsets", "StatefulSet", true);
export const LEASES = resource("coordination.k8s.io", "leases", "Lease", true);
