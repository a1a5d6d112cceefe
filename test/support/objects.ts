// SPDX-License-Identifier: Apache-2.0
// Kubernetes objects as they arrive in admission reviews, and the reviews themselves.

import type {
  AdmissionRequest,
  AdmissionResponse,
  Operation,
} from "../../webhook/review/admission-review.ts";
import { applyAndVerify } from "../../webhook/review/json-patch.ts";

export type Json = Readonly<Record<string, unknown>>;

interface PodOptions {
  readonly namespace?: string;
  /** Instead of a name. */
  readonly generateName?: string;
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly owner?: Json;
  readonly spec?: Json;
}

export function pod(name: string, options: PodOptions = {}): Json {
  const { namespace = "shop", generateName, uid, labels, annotations, owner, spec } = options;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...(name === "" ? {} : { name }),
      ...(generateName === undefined ? {} : { generateName }),
      namespace,
      ...(uid === undefined ? {} : { uid }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(owner === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec: { containers: [{ name: "main", image: "registry.example/app:1" }], ...spec },
  };
}

export function ownedBy(kind: string, name: string, apiVersion = "apps/v1", uid = `uid-of-${name}`): Json {
  return { apiVersion, kind, name, uid, controller: true };
}

/** Pod `set-ordinal`, as the StatefulSet controller makes it. */
export function statefulPod(set: string, ordinal: number, options: PodOptions = {}): Json {
  const name = `${set}-${ordinal}`;
  const labels = {
    "statefulset.kubernetes.io/pod-name": name,
    "apps.kubernetes.io/pod-index": String(ordinal),
    ...options.labels,
  };
  return pod(name, { owner: ownedBy("StatefulSet", set), ...options, labels });
}

/** A pod of a Deployment, as its ReplicaSet makes it: without a name. */
export function deploymentPod(deployment: string, options: PodOptions = {}): Json {
  const replicaSet = `${deployment}-5d9c7b`;
  const labels = { "pod-template-hash": "5d9c7b", ...options.labels };
  return pod("", {
    generateName: `${replicaSet}-`,
    owner: ownedBy("ReplicaSet", replicaSet),
    ...options,
    labels,
  });
}

interface WorkloadOptions {
  readonly namespace?: string;
  readonly uid?: string;
  readonly replicas?: number;
  /** Of the pod template. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Of the workload itself. */
  readonly own?: Readonly<Record<string, string>>;
  readonly spec?: Json;
}

export function workload(kind: string, name: string, options: WorkloadOptions = {}): Json {
  const { namespace = "shop", uid, replicas, annotations = {}, labels = { app: name }, own, spec } = options;
  return {
    apiVersion: kind === "CloneSet" ? "apps.kruise.io/v1alpha1" : "apps/v1",
    kind,
    metadata: {
      name,
      namespace,
      ...(uid === undefined ? {} : { uid }),
      ...(own === undefined ? {} : { annotations: own }),
    },
    spec: {
      ...(replicas === undefined ? {} : { replicas }),
      template: { metadata: { labels, annotations } },
      ...spec,
    },
  };
}

export function poolObject(name: string, spec: Json): Json {
  return { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name }, spec };
}

export function claimObject(name: string, spec: Json, namespace = "shop"): Json {
  return { apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", metadata: { name, namespace }, spec };
}

export function namespaceObject(
  name: string,
  annotations: Readonly<Record<string, string>> = {},
  labels: Readonly<Record<string, string>> = {},
): Json {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, annotations, labels } };
}

/** The review of an object, as the API server sends it; for a DELETE the object is the old one. */
export function review(
  object: Json,
  operation: Operation = "CREATE",
  over: Partial<AdmissionRequest> = {},
): AdmissionRequest {
  const meta = object["metadata"] as Readonly<Record<string, string>>;
  const kind = String(object["kind"]);
  return {
    uid: "review-1",
    kind: { group: "", version: "v1", kind },
    resource: { group: "", version: "v1", resource: `${kind.toLowerCase()}s` },
    subResource: "",
    name: meta["name"] ?? "",
    namespace: meta["namespace"] ?? "",
    operation,
    userInfo: { username: "tester", uid: "", groups: [] },
    object: operation === "DELETE" ? null : object,
    oldObject: operation === "DELETE" ? object : null,
    dryRun: false,
    ...over,
  };
}

/** The object as the API server has it after an answer: what the patch makes of it. */
export function applied(object: Json, response: AdmissionResponse): Json {
  if (response.patch === undefined) return object;
  return applyAndVerify(object, JSON.parse(Buffer.from(response.patch, "base64").toString("utf8"))) as Json;
}

export function annotationsOf(object: Json): Readonly<Record<string, string>> {
  const meta = object["metadata"] as Json;
  return (meta["annotations"] ?? {}) as Readonly<Record<string, string>>;
}

/** "CODE: message" of a refusal, "" for what was let through. */
export function deniedAs(response: AdmissionResponse): string {
  if (response.allowed) return "";
  return `${response.status?.details?.causes[0]?.reason ?? ""}: ${response.status?.message ?? ""}`;
}

/** The operations of an answer's patch. */
export function opsOf(response: AdmissionResponse): unknown {
  return response.patch === undefined
    ? []
    : JSON.parse(Buffer.from(response.patch, "base64").toString("utf8"));
}
