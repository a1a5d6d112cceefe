// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import type { Manifest } from "./review.ts";

type Texts = Readonly<Record<string, string>>;

const CONTAINERS = [{ name: "main", image: "main" }];

export function namespace(name: string, more: { labels?: Texts; annotations?: Texts } = {}): Manifest {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, ...more } };
}

/** The pool's ranges, each a CIDR or a range of the spec, and whatever else its spec says. */
export function pool(
  name: string,
  ranges: readonly (string | object)[],
  more: Readonly<Record<string, unknown>> = {},
): Manifest {
  const spec = {
    ranges: ranges.map((range) => (typeof range === "string" ? { cidr: range } : range)),
    ...more,
  };
  return { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name }, spec };
}

export function pod(ns: string, name: string, annotations: Texts = {}): Manifest {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: ns, name, ...unlessEmpty(annotations) },
    spec: { containers: CONTAINERS },
  };
}

/** A pod without a name of its own. */
export function generatedPod(ns: string, generateName: string, annotations: Texts = {}): Manifest {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: ns, generateName, ...unlessEmpty(annotations) },
    spec: { containers: CONTAINERS },
  };
}

/** The API server leaves out what is empty. */
function unlessEmpty(annotations: Texts): { annotations?: Texts } {
  return Object.keys(annotations).length === 0 ? {} : { annotations };
}

/** A claim as a person writes it. */
export function claim(ns: string, name: string, spec: Readonly<Record<string, unknown>>): Manifest {
  return { apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", metadata: { namespace: ns, name }, spec };
}

interface Scale {
  readonly replicas: number;
  /** spec.ordinals.start */
  readonly start?: number;
}

/** A StatefulSet whose template has the annotations. */
export function statefulSet(ns: string, name: string, scale: Scale, annotations: Texts): Manifest {
  const { replicas, start } = scale;
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { namespace: ns, name },
    spec: {
      replicas,
      serviceName: name,
      ...(start === undefined ? {} : { ordinals: { start } }),
      selector: { matchLabels: { app: name } },
      template: template(name, annotations),
    },
  };
}

/** The pod of that ordinal, as the StatefulSet controller makes it from the template. */
export function podOf(set: Manifest, ordinal: number): Manifest {
  const { namespace: ns = "", name: setName = "", uid = randomUUID() } = set.metadata;
  const name = `${setName}-${ordinal}`;
  const made = set.spec?.["template"] as ReturnType<typeof template>;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      namespace: ns,
      name,
      labels: {
        ...made.metadata.labels,
        "apps.kubernetes.io/pod-index": String(ordinal),
        "statefulset.kubernetes.io/pod-name": name,
      },
      annotations: made.metadata.annotations,
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "StatefulSet",
          name: setName,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: made.spec,
  };
}

/** A Deployment that replaces its pods one by one without ever having more than its replicas. */
export function deployment(ns: string, name: string, scale: Scale, annotations: Texts): Manifest {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { namespace: ns, name },
    spec: {
      replicas: scale.replicas,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      selector: { matchLabels: { app: name } },
      template: template(name, annotations),
    },
  };
}

/** A pod as the Deployment's ReplicaSet makes it: without a name, and owned by the ReplicaSet. */
export function replicaOf(of: Manifest, hash = "5d4f8b7c9f"): Manifest {
  const { namespace: ns = "", name = "" } = of.metadata;
  const made = of.spec?.["template"] as ReturnType<typeof template>;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      namespace: ns,
      generateName: `${name}-${hash}-`,
      labels: { ...made.metadata.labels, "pod-template-hash": hash },
      annotations: made.metadata.annotations,
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "ReplicaSet",
          name: `${name}-${hash}`,
          uid: randomUUID(),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: made.spec,
  };
}

function template(app: string, annotations: Texts) {
  return { metadata: { labels: { app }, annotations }, spec: { containers: CONTAINERS } };
}
