// SPDX-License-Identifier: Apache-2.0
// What makes Berth serve every pod of Kubernetes' tests: they ask for nothing, and know nothing of it.
import { type Json, pool } from "../cluster/objects.ts";

/** Addresses of the pods that keep none, in blocks of 16, and of those of StatefulSets. */
export const POOLS: readonly Json[] = [
  pool("conformance", {
    ranges: [{ cidr: "10.40.0.0/16", from: "10.40.16.1", to: "10.40.23.254", gateway: "10.40.0.1" }],
    routes: [{ dst: "0.0.0.0/0" }],
    blockSize: { ipv4: 28 },
    cooldown: "1s",
    default: true,
  }),
  pool("conformance-sticky", {
    ranges: [{ cidr: "10.40.0.0/16", from: "10.40.24.1", to: "10.40.27.254", gateway: "10.40.0.1" }],
    routes: [{ dst: "0.0.0.0/0" }],
    cooldown: "1s",
  }),
];

const NAME = "conformance-sticky";
const ANNOTATIONS = `{"berth.dev/pools": "${NAME}", "berth.dev/sticky": "true"}`;

/** Gives each pod of a StatefulSet the annotations that its author would write. Webhooks are called after policies. */
export const STICKY_POLICY: readonly Json[] = [
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingAdmissionPolicy",
    metadata: { name: NAME },
    spec: {
      failurePolicy: "Fail",
      reinvocationPolicy: "Never",
      matchConstraints: {
        namespaceSelector: { matchExpressions: [{ key: "e2e-framework", operator: "Exists" }] },
        resourceRules: [
          { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
        ],
      },
      matchConditions: [
        {
          name: "of-a-stateful-set",
          expression:
            "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, o.kind == 'StatefulSet') && !(has(object.spec.hostNetwork) && object.spec.hostNetwork)",
        },
      ],
      mutations: [
        {
          patchType: "ApplyConfiguration",
          applyConfiguration: {
            expression: `Object{metadata: Object.metadata{annotations: ${ANNOTATIONS}}}`,
          },
        },
      ],
    },
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingAdmissionPolicyBinding",
    metadata: { name: NAME },
    spec: { policyName: NAME },
  },
];
