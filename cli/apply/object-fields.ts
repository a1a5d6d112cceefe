// SPDX-License-Identifier: Apache-2.0
import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { nearestWord } from "../../allocator/base/nearest-word.ts";
import {
  flag,
  invalidPool,
  mapOf,
  object,
  quote,
  type Validator,
  whole,
} from "../../allocator/base/validation.ts";
import type { ManifestObject } from "./documents.ts";

type Shapes = Readonly<Record<string, Validator>>;

const anything: Validator = () => undefined;

/** An API server takes null for a field that is left out. */
function orNull(shape: Validator): Validator {
  return (value, field) => (value === null ? undefined : shape(value, field));
}

const text = orNull((value, field) =>
  typeof value === "string"
    ? undefined
    : invalidPool(field, `must be text, not ${quote(value)}; write it in quotes`),
);
const texts = orNull(mapOf(anything, text));
const count = orNull(whole(0, 2 ** 31 - 1));

/** These fields and no others; those that are only named may hold anything. */
function only(names: readonly string[], shapes: Shapes = {}): Validator {
  const named = Object.fromEntries(names.map((name) => [name, anything]));
  return orNull(object({ ...named, ...shapes }));
}

/** meta/v1 ObjectMeta. */
const METADATA = only(
  [
    ...["selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"],
    ...["deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields"],
  ],
  { name: text, generateName: text, namespace: text, labels: texts, annotations: texts },
);

/** Of a pod's spec, what decides on its addresses and nodes. */
const READ_OF_POD: Shapes = {
  hostNetwork: orNull(flag),
  nodeName: text,
  nodeSelector: texts,
  affinity: anything,
  serviceAccountName: text,
};

/** The rest of core/v1 PodSpec in Kubernetes 1.37. */
const MORE_OF_POD: readonly string[] = [
  ...["activeDeadlineSeconds", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy"],
  ...["enableServiceLinks", "ephemeralContainers", "evictionResponders", "hostAliases", "hostIPC", "hostPID"],
  ...["hostUsers", "hostname", "hostnameOverride", "imagePullSecrets", "initContainers", "os", "overhead"],
  ...["preemptionPolicy", "priority", "priorityClassName", "readinessGates", "resourceClaims", "resources"],
  ...["restartPolicy", "runtimeClassName", "schedulerName", "schedulingGates", "schedulingGroup"],
  ...["securityContext", "serviceAccount", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain"],
  ...["terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes", "workloadRef"],
];

const OF_METADATA: readonly string[] = ["annotations", "labels"];

/**
 * Kubernetes adds fields to a pod's spec with almost every version. So one that is not known may stay, unless it is nearly the name of
 * one that Berth reads, or belongs into the metadata.
 */
const POD_SPEC = orNull((value, field) => {
  const known = only([...MORE_OF_POD, ...Object.keys(value ?? {})], READ_OF_POD);
  return known(value, field) ?? misspelt(value ?? {}, field);
});

function misspelt(spec: object, field: string): Refusal | undefined {
  const read = Object.keys(READ_OF_POD);
  for (const name of Object.keys(spec)) {
    if (read.includes(name) || MORE_OF_POD.includes(name)) continue;
    const unknown = `has an unknown field ${quote(name)}`;
    if (nearestWord(name, OF_METADATA) !== undefined)
      return invalidPool(field, `${unknown}; annotations and labels belong under metadata`);
    const near = nearestWord(name, read);
    if (near !== undefined) return invalidPool(field, `${unknown}; did you mean ${near}?`);
  }
  return undefined;
}

const TEMPLATE = only([], { metadata: METADATA, spec: POD_SPEC });

/** Specs by kind; those of Berth's own kinds are judged at their review. */
const SPECS: Shapes = {
  Namespace: only(["finalizers"]),
  Pod: POD_SPEC,
  StatefulSet: only(
    [
      ...["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy", "updateStrategy"],
      ...["revisionHistoryLimit", "minReadySeconds", "persistentVolumeClaimRetentionPolicy"],
    ],
    { replicas: count, template: TEMPLATE, ordinals: only([], { start: count }) },
  ),
  Deployment: only(
    ["selector", "strategy", "minReadySeconds", "revisionHistoryLimit", "paused", "progressDeadlineSeconds"],
    { replicas: count, template: TEMPLATE },
  ),
};

const TOP = only(["apiVersion", "kind", "metadata", "spec", "status"]);

/**
 * What an API server refuses, told to check fields strictly as kubectl does, of the parts that can hold a request for an address: a field that is
 * not known, a value that is not of its type. OBJECT_INVALID names the field.
 */
export function wrongField({ kind: { kind }, json }: ManifestObject): Refusal | undefined {
  const { metadata = null, spec = null } = json;
  const refusal =
    TOP(json, `the ${kind}`) ?? METADATA(metadata, "metadata") ?? (SPECS[kind] ?? anything)(spec, "spec");
  return refusal && refuse("OBJECT_INVALID", refusal.message, refusal.details);
}
