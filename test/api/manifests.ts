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
