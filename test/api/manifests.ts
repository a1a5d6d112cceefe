// SPDX-License-Identifier: Apache-2.0
// Objects as people apply them.
import { DB_POOL } from "../support/fixtures.ts";
import { type Json, poolObject } from "../support/objects.ts";

/** The pools of most tests: `db` for everybody, `vault` for namespaces of the team `bank`. */
export const POOL_OBJECTS: readonly Json[] = [
  poolObject("db", DB_POOL.spec as unknown as Json),
  poolObject("vault", {
    ranges: [{ cidr: "10.50.0.0/29" }],
    namespaceSelector: { matchLabels: { team: "bank" } },
    blockSize: {},
  }),
];

/** A StatefulSet whose template has these annotations. The API server keeps it; nobody makes its pods but the test. */
export function statefulSet(name: string, replicas: number, annotations: Json, own: Json = {}): Json {
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, namespace: "shop", annotations: own },
    spec: {
      replicas,
      serviceName: name,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations },
        spec: { containers: [{ name: "main", image: "registry.example/app:1" }] },
      },
    },
  };
}

/** Of a Job whose pods have indexes; nobody makes them but the test. */
export function indexedJob(completions: number, annotations: Json): Json {
  const containers = [{ name: "main", image: "registry.example/app:1" }];
  const template = { metadata: { annotations }, spec: { restartPolicy: "Never", containers } };
  return { completionMode: "Indexed", completions, parallelism: completions, template };
}

/** A role for the default account of the namespace, of the verb that kubectl's own `create role` does not know. */
export function mayUse(pool: string, namespace: string): readonly Json[] {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const metadata = { name: `use-${pool}`, namespace };
  const rules = [{ apiGroups: ["berth.dev"], resources: ["ippools"], resourceNames: [pool], verbs: ["use"] }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: `use-${pool}` };
  const subjects = [{ kind: "ServiceAccount", name: "default", namespace }];
  return [
    { apiVersion, kind: "Role", metadata, rules },
    { apiVersion, kind: "RoleBinding", metadata, roleRef, subjects },
  ];
}
