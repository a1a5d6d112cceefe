// SPDX-License-Identifier: Apache-2.0
import {
  apiVersionOf,
  CLAIMS,
  DEPLOYMENTS,
  NAMESPACES,
  PODS,
  POOLS,
  type Resource,
  STATEFULSETS,
} from "../../kube/api/resource.ts";
import type { GroupVersionKind, GroupVersionResource, Route } from "../../webhook/review/admission-review.ts";

/** A kind of object that Berth has a say about. */
export interface KindFacts extends Resource {
  /** How lines of output and operands name it, first the usual one. */
  readonly names: readonly string[];
  /** Where objects of the kind are reviewed when they are written. */
  readonly route: Route;
  /** What `get` calls a list of them; absent: it has none. */
  readonly listing?: string;
}

const WORKLOADS = { route: "/validate/workloads", listing: "workloads" } as const;

export const IP_CLAIM: KindFacts = {
  ...CLAIMS,
  names: ["ipclaim", "ipclaims", "claim", "claims"],
  route: "/validate/claims",
  listing: "claims",
};

export const IP_POOL: KindFacts = {
  ...POOLS,
  names: ["ippool", "ippools", "pool", "pools"],
  route: "/validate/pools",
  listing: "pools",
};

/** In the order in which one `apply` sends them: what others need comes first. */
export const MANAGED: readonly KindFacts[] = [
  { ...NAMESPACES, names: ["namespace", "namespaces", "ns"], route: "/validate/namespaces" },
  IP_POOL,
  IP_CLAIM,
  { ...STATEFULSETS, names: ["statefulset", "statefulsets", "sts"], ...WORKLOADS },
  { ...DEPLOYMENTS, names: ["deployment", "deployments", "deploy"], ...WORKLOADS },
  { ...PODS, names: ["pod", "pods", "po"], route: "/validate/pods", listing: "pods" },
];

/** The kind of a manifest; undefined for one that Berth leaves alone, another group's of the same name too. */
export function kindOf(apiVersion: string, kind: string): KindFacts | undefined {
  return MANAGED.find((known) => known.kind === kind && apiVersionOf(known) === apiVersion);
}

/** The kind that an operand such as `sts` names, or `ipclaim.berth.dev`, as kubectl prints it. */
export function kindNamed(name: string): KindFacts | undefined {
  const bare = name.toLowerCase();
  return MANAGED.find(({ names, group }) =>
    names.some((one) => one === bare || (group !== "" && `${one}.${group}` === bare)),
  );
}

export function gvkOf({ group, version, kind }: KindFacts): GroupVersionKind {
  return { group, version, kind };
}

export function gvrOf({ group, version, plural }: KindFacts): GroupVersionResource {
  return { group, version, resource: plural };
}
