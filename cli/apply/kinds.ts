// SPDX-License-Identifier: Apache-2.0
import type { GroupVersionKind, GroupVersionResource, Route } from "../../webhook/review/admission-review.ts";

/** A kind of object that Berth has a say about. */
export interface KindFacts {
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  /** As in URLs and reviews. */
  readonly plural: string;
  /** How lines of output and operands name it, first the usual one. */
  readonly names: readonly string[];
  readonly namespaced: boolean;
  /** Where objects of the kind are reviewed when they are written. */
  readonly route: Route;
  /** What `get` calls a list of them; absent: it has none. */
  readonly listing?: string;
}

const BERTH = { group: "berth.dev", version: "v1alpha1" };
const APPS = {
  group: "apps",
  version: "v1",
  namespaced: true,
  route: "/validate/workloads",
  listing: "workloads",
} as const;
const CORE = { group: "", version: "v1" };

export const IP_CLAIM: KindFacts = {
  ...BERTH,
  kind: "IPClaim",
  plural: "ipclaims",
  names: ["ipclaim", "ipclaims", "claim", "claims"],
  namespaced: true,
  route: "/validate/claims",
  listing: "claims",
};

/** In the order in which one `apply` sends them: what others need comes first. */
export const MANAGED: readonly KindFacts[] = [
  {
    ...CORE,
    kind: "Namespace",
    plural: "namespaces",
    names: ["namespace", "namespaces", "ns"],
    namespaced: false,
    route: "/validate/namespaces",
  },
  {
    ...BERTH,
    kind: "IPPool",
    plural: "ippools",
    names: ["ippool", "ippools", "pool", "pools"],
    namespaced: false,
    route: "/validate/pools",
    listing: "pools",
  },
  IP_CLAIM,
  {
    ...APPS,
    kind: "StatefulSet",
    plural: "statefulsets",
    names: ["statefulset", "statefulsets", "sts"],
  },
  {
    ...APPS,
    kind: "Deployment",
    plural: "deployments",
    names: ["deployment", "deployments", "deploy"],
  },
  {
    ...CORE,
    kind: "Pod",
    plural: "pods",
    names: ["pod", "pods", "po"],
    namespaced: true,
    route: "/validate/pods",
    listing: "pods",
  },
];

/** The kind of a manifest; undefined for one that Berth leaves alone, another group's of the same name too. */
export function kindOf(apiVersion: string, kind: string): KindFacts | undefined {
  return MANAGED.find((known) => known.kind === kind && apiVersionOf(known) === apiVersion);
}

/** The kind that an operand such as `sts` names. */
export function kindNamed(name: string): KindFacts | undefined {
  return MANAGED.find(({ names }) => names.includes(name.toLowerCase()));
}

export function apiVersionOf({ group, version }: Pick<KindFacts, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}

export function gvkOf({ group, version, kind }: KindFacts): GroupVersionKind {
  return { group, version, kind };
}

export function gvrOf({ group, version, plural }: KindFacts): GroupVersionResource {
  return { group, version, resource: plural };
}
