// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { type AddressEntry, type Request, requestsAddress } from "../model/address-request.ts";
import type { NamespaceState } from "../model/cluster-state.ts";
import {
  bad,
  readAddressArray,
  readChoice,
  readEntries,
  readFamilies,
  readPoolArray,
  readPools,
  readSticky,
  readTtl,
  retention,
} from "./annotation-values.ts";

/** Annotations that people write. */
export const IPS = "berth.dev/ips";
export const POOLS = "berth.dev/pools";
export const STICKY = "berth.dev/sticky";
export const FAMILIES = "berth.dev/families";
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

/** An API server keeps no annotations that are longer together: what is was not sent by one, and would only cost time. */
const LONGEST_VALUE = 256 * 1024;

type Reader = (value: string, key: string) => Request | Refusal;

/** One annotation that another system, or Berth, understands. */
interface AnnotationFormat {
  readonly system: string;
  readonly key: string;
  readonly read: Reader;
}

/**
 * Every annotation that asks for something. Another system's annotation is one more row. When two rows speak of
 * the same thing they must say the same: which one to believe is not ours to guess.
 */
export const ANNOTATION_FORMATS: readonly AnnotationFormat[] = [
  { system: "Berth", key: IPS, read: readEntries },
  { system: "Berth", key: POOLS, read: (value, key) => readPools(value.split(","), key) },
  { system: "Berth", key: STICKY, read: readSticky },
  { system: "Berth", key: FAMILIES, read: readFamilies },
  { system: "Berth", key: WHEN_DELETED, read: (v, k) => retention(readChoice(v, k), "whenDeleted") },
  { system: "Berth", key: WHEN_SCALED, read: (v, k) => retention(readChoice(v, k), "whenScaled") },
  { system: "Berth", key: TTL, read: readTtl },
  { system: "Calico", key: "cni.projectcalico.org/ipAddrs", read: readAddressArray },
  { system: "Calico", key: "cni.projectcalico.org/ipv4pools", read: readPoolArray },
  { system: "Calico", key: "cni.projectcalico.org/ipv6pools", read: readPoolArray },
];

/**
 * What the annotations ask for; a refusal names the annotation, its value and the syntax. Of a pod, with its namespace: that
 * one may ask for pods that do not ask themselves, for a pool or to be sticky, of which families, and how long it is kept.
 */
export function readRequest(annotations: Labels, namespace?: NamespaceState): Request | Refusal {
  const own = readEach(annotations);
  if (namespace === undefined || isRefusal(own) || requestsAddress(own)) return own;
  const defaults = NAMESPACE_DEFAULTS.filter(
    (key) => annotations[key] === undefined && namespace.annotations[key] !== undefined,
  );
  if (defaults.length === 0) return own;
  const added = Object.fromEntries(defaults.map((key) => [key, namespace.annotations[key] ?? ""]));
  return readEach({ ...annotations, ...added });
}

function readEach(annotations: Labels): Request | Refusal {
  const asked: Record<string, { value: unknown; key: string }> = {};
  for (const format of ANNOTATION_FORMATS) {
    const value = annotations[format.key];
    if (value === undefined) continue;
    if (value.length > LONGEST_VALUE) return bad(format.key, `it is longer than ${LONGEST_VALUE} characters`);
    const said = format.read(value, format.key);
    if (isRefusal(said)) return said;
    const clash = merge(asked, said, format.key);
    if (clash !== undefined) return clash;
  }
  return Object.fromEntries(Object.entries(asked).map(([aspect, { value }]) => [aspect, value])) as Request;
}

function merge(
  asked: Record<string, { value: unknown; key: string }>,
  said: Request,
  key: string,
): Refusal | undefined {
  for (const [aspect, value] of Object.entries(said)) {
    const before = asked[aspect];
    if (before === undefined) {
      asked[aspect] = { value, key };
    } else if (aspect === "retention") {
      asked[aspect] = { value: { ...(before.value as object), ...(value as object) }, key };
    } else if (aspect === "pools" && bothOf(before.key, key, "cni.projectcalico.org/ipv")) {
      asked[aspect] = { value: [...(before.value as string[]), ...(value as string[])], key };
    } else if (meaningOf(aspect, before.value) !== meaningOf(aspect, value)) {
      return bad(key, `it disagrees with ${before.key}; keep one of the two`);
    }
  }
  return undefined;
}

/** The order of a pod's two addresses means nothing. */
function meaningOf(aspect: string, value: unknown): string {
  return JSON.stringify(
    aspect === "entries" ? (value as AddressEntry[]).map((entry) => entry.toSorted()) : value,
  );
}

function bothOf(a: string, b: string, prefix: string): boolean {
  return a.startsWith(prefix) && b.startsWith(prefix);
}
