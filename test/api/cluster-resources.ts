// SPDX-License-Identifier: Apache-2.0
// Kinds that tests write and Berth does not; the others are in kube/api/resource.ts.
import { CONFIGURATIONS, JOBS, type Resource, resource } from "../../kube/api/resource.ts";

const RBAC = "rbac.authorization.k8s.io/v1";
const REGISTRATION = "admissionregistration.k8s.io/v1";

export const ACCOUNTS = resource("v1", "ServiceAccount", "serviceaccounts", "namespace");
export const CONFIG_MAPS = resource("v1", "ConfigMap", "configmaps", "namespace");
export const QUOTAS = resource("v1", "ResourceQuota", "resourcequotas", "namespace");
export const CRON_JOBS: Resource = { ...JOBS, plural: "cronjobs", kind: "CronJob" };
export const ENDPOINT_SLICES = resource(
  "discovery.k8s.io/v1",
  "EndpointSlice",
  "endpointslices",
  "namespace",
);
export const DEFINITIONS = resource(
  "apiextensions.k8s.io/v1",
  "CustomResourceDefinition",
  "customresourcedefinitions",
  "cluster",
);

export const ROLES = resource(RBAC, "Role", "roles", "namespace");
export const ROLE_BINDINGS = resource(RBAC, "RoleBinding", "rolebindings", "namespace");
export const CLUSTER_ROLES = resource(RBAC, "ClusterRole", "clusterroles", "cluster");
export const CLUSTER_ROLE_BINDINGS = resource(RBAC, "ClusterRoleBinding", "clusterrolebindings", "cluster");

export const [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS] = CONFIGURATIONS as readonly [Resource, Resource];
export const POLICIES = resource(
  REGISTRATION,
  "ValidatingAdmissionPolicy",
  "validatingadmissionpolicies",
  "cluster",
);
export const POLICY_BINDINGS = resource(
  REGISTRATION,
  "ValidatingAdmissionPolicyBinding",
  "validatingadmissionpolicybindings",
  "cluster",
);
