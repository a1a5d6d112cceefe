// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { type Request, requestsAddress } from "../model/address-request.ts";
import type { NamespaceState } from "../model/cluster-state.ts";
import {
  namesIn,
  readChoice,
  readFallback,
  readFamilies,
  readPools,
  readSticky,
  readTtl,
  retention,
} from "./annotation-values.ts";
import { asksNothing, READ_ROWS } from "./dialects.ts";
import { readEntriesOn } from "./interface-values.ts";
import { type AnnotationFormat, mergeFormats } from "./merged-request.ts";

/** Annotations that people write. */
export const IPS = "berth.dev/ips";
export const POOLS = "berth.dev/pools";
export const STICKY = "berth.dev/sticky";
export const FAMILIES = "berth.dev/families";
export const FALLBACK = "berth.dev/fallback";
export const WHEN_DELETED = "berth.dev/when-deleted";
export const WHEN_SCALED = "berth.dev/when-scaled";
export const TTL = "berth.dev/ttl";
/** Annotations that Berth writes; what a pod brings along under these keys is ignored. */
export const ASSIGNED_CLAIM = "berth.dev/claim";
export const ASSIGNED_ADDRESSES = "berth.dev/addresses";
export const ASSIGNED_TOKEN = "berth.dev/token";

/** What a namespace may say for pods that do not ask for themselves. */
export const NAMESPACE_DEFAULTS: readonly string[] = [
  POOLS,
  STICKY,
  FAMILIES,
  WHEN_DELETED,
  WHEN_SCALED,
  TTL,
];

/** Kubernetes' own namespace: nothing of Berth may stand between its pods and their start, so none of them asks. */
export const EXEMPT_NAMESPACE = "kube-system";

/**
 * Every annotation of a pod that asks for something: Berth's own, and those of other systems (`dialect-rows.ts`). When two speak
 * of the same thing they must say the same: which one to believe is not ours to guess.
 */
export const ANNOTATION_FORMATS: readonly AnnotationFormat[] = [
  { system: "Berth", key: IPS, read: readEntriesOn },
  { system: "Berth", key: POOLS, read: (value, key) => readPools(namesIn(value, ","), key) },
  { system: "Berth", key: STICKY, read: readSticky },
  { system: "Berth", key: FAMILIES, read: readFamilies },
  { system: "Berth", key: FALLBACK, read: readFallback },
  { system: "Berth", key: WHEN_DELETED, read: (v, k) => retention(readChoice(v, k), "whenDeleted") },
  { system: "Berth", key: WHEN_SCALED, read: (v, k) => retention(readChoice(v, k), "whenScaled") },
  { system: "Berth", key: TTL, read: readTtl },
  ...dialectsOn("pod"),
];

/** The same of a namespace. */
export const NAMESPACE_FORMATS: readonly AnnotationFormat[] = [
  ...ANNOTATION_FORMATS.filter(({ key }) => NAMESPACE_DEFAULTS.includes(key)),
  ...dialectsOn("namespace"),
];

function dialectsOn(place: "pod" | "namespace"): readonly AnnotationFormat[] {
  return READ_ROWS.filter(({ on }) => on.includes(place));
}

/**
 * What the annotations ask for; a refusal names the annotation, its value and the syntax. Of a pod, with its namespace: that
 * one may ask for pods that do not ask themselves, for a pool or to be sticky, of which families, and how long it is kept.
 */
export function readRequest(annotations: Labels, namespace?: NamespaceState): Request | Refusal {
  const asked = spoken(annotations, ANNOTATION_FORMATS);
  const own = mergeFormats(asked, annotations);
  if (namespace === undefined || isRefusal(own)) return own;
  const defaults = spoken(namespace.annotations, NAMESPACE_FORMATS).filter(
    ({ key }) => !asked.some((one) => one.key === key),
  );
  const added = requestsAddress(own) ? defaults.filter(({ key }) => completes(key, asked)) : defaults;
  if (added.length === 0) return own;
  const said = Object.fromEntries(added.map(({ key }) => [key, namespace.annotations[key] ?? ""]));
  return mergeFormats([...asked, ...added], { ...annotations, ...said });
}

/** Calico takes the pools of each family from the pod, and else from its namespace. */
function completes(key: string, asked: readonly AnnotationFormat[]): boolean {
  return CALICO_POOLS.includes(key) && asked.some((one) => CALICO_POOLS.includes(one.key));
}

const CALICO_POOLS: readonly string[] = [
  "cni.projectcalico.org/ipv4pools",
  "cni.projectcalico.org/ipv6pools",
];

function spoken(annotations: Labels, formats: readonly AnnotationFormat[]): readonly AnnotationFormat[] {
  if (Object.keys(annotations).length === 0) return [];
  return formats.filter(({ key }) => annotations[key] !== undefined && !asksNothing(key, annotations));
}
