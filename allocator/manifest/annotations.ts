// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { Address, Family } from "../ip/address.ts";
import { type Request, requestsAddress, requestsAddressOn } from "../model/address-request.ts";
import type { NamespaceState } from "../model/cluster-state.ts";
import { FIRST_INTERFACE } from "../model/interfaces.ts";
import { bad, readChoice, readFallback, readFamilies, readTtl, retention } from "./annotation-values.ts";
import type { DialectReader } from "./dialect-values.ts";
import { isNoRequest, NAMED_ROWS, namedKeysIn, READ_ROWS, type ReadRow } from "./dialects.ts";
import { withFirstOfFamilies } from "./first-interface-families.ts";
import { lackingOfFirst } from "./first-interface-lacks.ts";
import { readPoolsOn, readStickyOn } from "./interface-values.ts";
import { addressedMacs, asksOnlyMacs, placeMacs } from "./mac-requests.ts";
import { checked, IPS, MAC, readEntriesWithMacs, readMacs } from "./mac-values.ts";
import { type AnnotationFormat, FALLBACK, FAMILIES, mergeFormats, readOne } from "./merged-request.ts";
import { NETWORK_ANNOTATIONS } from "./network-attachments.ts";

/** Annotations that people write. */
export { IPS, MAC } from "./mac-values.ts";
export { ASSIGNED_ADDRESSES, FALLBACK, FAMILIES } from "./merged-request.ts";
export const POOLS = "berth.dev/pools";
export const STICKY = "berth.dev/sticky";
export const WHEN_DELETED = "berth.dev/when-deleted";
export const WHEN_SCALED = "berth.dev/when-scaled";
export const TTL = "berth.dev/ttl";
/** HybridNet's word for it; `true` asks for an address. */
export const RETAIN = "networking.alibaba.com/ip-retain";
/** Annotations that Berth writes; what a pod brings along under these keys is ignored. */
export const ASSIGNED_CLAIM = "berth.dev/claim";
export const ASSIGNED_TOKEN = "berth.dev/token";
/** What the pod asked for at its review (`reviewed-request.ts`); in a cluster alone. */
export const REVIEWED_REQUEST = "berth.dev/reviewed";

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
 * Every annotation of a pod that asks for something: Berth's own, and those of other systems (`dialect-rows.ts`) that have no names in
 * their keys. When two speak of the same thing they must say the same: which one to believe is not ours to guess.
 */
export const ANNOTATION_FORMATS: readonly AnnotationFormat[] = [
  { system: "Berth", key: IPS, read: readEntriesWithMacs },
  { system: "Berth", key: MAC, read: readMacs },
  { system: "Berth", key: POOLS, read: readPoolsOn },
  { system: "Berth", key: STICKY, read: readStickyOn },
  { system: "Berth", key: FAMILIES, read: readFamilies },
  { system: "Berth", key: FALLBACK, read: readFallback },
  { system: "Berth", key: WHEN_DELETED, read: (v, k) => retention(readChoice(v, k), "whenDeleted") },
  { system: "Berth", key: WHEN_SCALED, read: (v, k) => retention(readChoice(v, k), "whenScaled") },
  { system: "Berth", key: TTL, read: readTtl },
  ...dialectsOn("pod"),
];

/** The same of a namespace. */
export const NAMESPACE_FORMATS: readonly AnnotationFormat[] = [
  ...ANNOTATION_FORMATS.filter(({ key }) => NAMESPACE_DEFAULTS.includes(key)).map((format) =>
    format.key === POOLS || format.key === STICKY ? { ...format, read: readOnFirst(format.read) } : format,
  ),
  ...dialectsOn("namespace"),
];

/** A namespace speaks of pods of which it does not know the networks: what they do not have would be reserved for them. */
function readOnFirst(read: DialectReader): DialectReader {
  return (value, key, annotations) => {
    const said = read(value, key, annotations);
    if (isRefusal(said) || said.interfacePools === undefined) return said;
    return bad(key, "a namespace asks for its pods' first interface alone; write interfaces into the pod");
  };
}

function dialectsOn(place: "pod" | "namespace"): readonly AnnotationFormat[] {
  return READ_ROWS.filter(({ on, matches }) => on.includes(place) && matches === undefined);
}

/** The keys of a pod's annotations that ask for something, those with names in them, too, whatever their values are. */
export function requestKeysIn(annotations: Labels): readonly string[] {
  const listed = ANNOTATION_FORMATS.filter(({ key }) => annotations[key] !== undefined).map(({ key }) => key);
  return [...new Set([...listed, ...namedKeysIn(annotations)])];
}

/** Whether MAC addresses in other systems' words are read: a pool of Berth's has them. Those of Berth's own always are. */
type MacChoice = "macs" | "no macs";

/**
 * What the annotations ask for; a refusal names the annotation, its value and the syntax. Of a pod, with its namespace: that
 * one may ask for pods that do not ask themselves, for a pool or to be sticky, of which families, and how long it is kept.
 */
export function readRequest(
  annotations: Labels,
  namespace?: NamespaceState,
  macs: MacChoice = "no macs",
): Request | Refusal {
  const keyNaming = (address: Address) => {
    const asked = [...spoken(annotations, ANNOTATION_FORMATS, macs), ...named(annotations, macs)];
    const names = (said: Request | Refusal) =>
      !isRefusal(said) && said.entries?.flat().includes(address) === true;
    return asked.find((format) => names(readOne(format, annotations, namespace?.name)))?.key;
  };
  return checked(readAll(annotations, namespace, macs), keyNaming);
}

function readAll(
  annotations: Labels,
  namespace: NamespaceState | undefined,
  macs: MacChoice,
): Request | Refusal {
  const asked = [...spoken(annotations, ANNOTATION_FORMATS, macs), ...named(annotations, macs)];
  const own = mergeFormats(asked, annotations, namespace?.name);
  if (isRefusal(own)) return saidOfMacs(own, asked, annotations);
  const defaults = spoken(namespace?.annotations ?? {}, NAMESPACE_FORMATS, macs).filter(
    ({ key }) => !asked.some((one) => one.key === key || (key === STICKY && one.key === RETAIN)),
  );
  const asking = withoutBeside(own, annotations);
  const isAsking = requestsAddress(asking) && !asksOnlyMacs(asking);
  if (isAsking && !requestsAddressOn(placeMacs(own), FIRST_INTERFACE))
    return withDefaultsOfFirst({ own, asked, annotations }, namespace);
  const added = isAsking ? defaults.filter(({ key }) => completes(key, asked)) : defaults;
  const placed = (request: Request) => addressedMacs(placeMacs(request), macKeyOf(asked));
  if (annotations[MAC] !== undefined && asksOnlyMacs(own) && added.length === 0)
    return bad(MAC, WITHOUT_ADDRESS);
  if (namespace === undefined) return placed(own);
  if (added.length === 0) return lackingOfFirst(own, asked, annotations) ?? placed(own);
  const said = Object.fromEntries(added.map(({ key }) => [key, namespace.annotations[key] ?? ""]));
  const all = mergeFormats([...asked, ...added], { ...annotations, ...said }, namespace.name);
  if (isRefusal(all)) return all;
  return lackingOfFirst(all, [...asked, ...added], { ...annotations, ...said }) ?? placed(all);
}

/**
 * Without what asks for nothing by itself: that an address is to be kept, where another system's word says it (HybridNet's `ip-retain`), is
 * about what the namespace asks for, too.
 */
export function withoutBeside(request: Request, annotations: Labels): Request {
  const { sticky: _, ...rest } = request;
  return annotations[STICKY] === undefined ? rest : request;
}

/** What a pod asks for, and in which of its annotations. */
interface OwnWords {
  readonly own: Request;
  readonly asked: readonly AnnotationFormat[];
  readonly annotations: Labels;
}

/** A pod that asks for further interfaces alone has on its first one what a pod that asks for nothing has there. */
function withDefaultsOfFirst(
  { own, asked, annotations }: OwnWords,
  namespace: NamespaceState | undefined,
): Request | Refusal {
  const placed = (request: Request) => addressedMacs(request, macKeyOf(asked));
  // the pools that it names are of other interfaces; all else that it says itself goes
  const formats = spoken(namespace?.annotations ?? {}, NAMESPACE_FORMATS, "no macs").filter(
    ({ key }) => key === POOLS || !asked.some((one) => one.key === key),
  );
  const defaults = mergeFormats(formats, namespace?.annotations ?? {}, namespace?.name);
  if (isRefusal(defaults)) return defaults;
  if (!requestsAddress(defaults)) return placed(own);
  const { pools = [], sticky, retention } = defaults;
  const named = { [FIRST_INTERFACE]: pools };
  const ofFirst = asked.filter((format) => "ofFirst" in format);
  const ofPod = mergeFormats(ofFirst, annotations);
  if (isRefusal(ofPod)) return ofPod;
  const said = ofFirst.length > 0 ? ofFirst : formats;
  const families = own.families === undefined ? (ofPod.families ?? defaults.families) : undefined;
  const key = said.findLast((format) => format.key === FAMILIES || "ofFirst" in format)?.key ?? FAMILIES;
  const first = families && withFirstOfFamilies({ interfacePools: named }, families, key);
  if (isRefusal(first)) return first;
  return placed({
    ...own,
    interfacePools: { ...own.interfacePools, ...(first ?? named) },
    defaultsFirst: true,
    ...(own.sticky === true || sticky === true ? { sticky: true } : {}),
    ...(retention === undefined ? {} : { retention: { ...retention, ...own.retention } }),
  });
}

function macKeyOf(asked: readonly AnnotationFormat[]): string {
  return asked.find(isOfMacs)?.key ?? MAC;
}

function isOfMacs(format: AnnotationFormat): boolean {
  return format.key === MAC || ("asks" in format && format.asks === "mac");
}

/** `berth.dev/ips` is read with `berth.dev/mac` in it: who disagrees on MAC addresses alone does so with that. */
function saidOfMacs(
  refusal: Refusal,
  asked: readonly AnnotationFormat[],
  { [MAC]: mac, ...annotations }: Labels,
): Refusal {
  if (mac === undefined) return refusal;
  const others = asked.filter((format) => !isOfMacs(format));
  if (isRefusal(mergeFormats(others, annotations))) return refusal;
  return { ...refusal, message: refusal.message.replace(`disagrees with ${IPS};`, `disagrees with ${MAC};`) };
}

const WITHOUT_ADDRESS =
  "a MAC address is pinned with the addresses of its interface; write berth.dev/ips or berth.dev/pools beside it";

/**
 * How many pods the annotations name addresses for, as far as can be known where they are no request together: what another system is asked for
 * stands among them, and may not agree with what Berth is. Undefined: one of them cannot be read, or none names any.
 */
export function mostEntries(annotations: Labels): number | undefined {
  const asked = [...spoken(annotations, ANNOTATION_FORMATS, "macs"), ...named(annotations, "macs")];
  let most = 0;
  for (const format of asked) {
    // the networks of all pods of a template: what they name is one pod's
    const said = NETWORK_ANNOTATIONS.includes(format.key) ? { entries: [[]] } : readOne(format, annotations);
    if (isRefusal(said)) return undefined;
    most = Math.max(most, said.entries?.length ?? 0);
  }
  return most === 0 ? undefined : most;
}

/** Calico takes the pools of each family from the pod, and else from its namespace. */
function completes(key: string, asked: readonly AnnotationFormat[]): boolean {
  return CALICO_POOLS.includes(key) && asked.some((one) => CALICO_POOLS.includes(one.key));
}

const FAMILY_OF_KEY: readonly (readonly [string, Family])[] = [
  ["cni.projectcalico.org/ipv4pools", "IPv4"],
  ["cni.projectcalico.org/ipv6pools", "IPv6"],
];
const CALICO_POOLS: readonly string[] = FAMILY_OF_KEY.map(([key]) => key);

/** Of a pod that names Calico's pools of one family: the key under which its namespace may name those of the other. */
export function familyOfNamespace(
  annotations: Labels,
): { readonly key: string; readonly family: Family } | undefined {
  const asked = spoken(annotations, ANNOTATION_FORMATS, "no macs");
  const left = FAMILY_OF_KEY.filter(([key]) => completes(key, asked)).filter(
    ([key]) => !asked.some((one) => one.key === key),
  );
  return left.map(([key, family]) => ({ key, family }))[0];
}

function spoken(
  annotations: Labels,
  formats: readonly AnnotationFormat[],
  macs: MacChoice,
): readonly AnnotationFormat[] {
  if (Object.keys(annotations).length === 0) return [];
  return formats.filter(
    (format) => annotations[format.key] !== undefined && isSpoken(format, format.key, annotations, macs),
  );
}

/** Of a key with names in it: the format is of what is written. */
function named(annotations: Labels, macs: MacChoice): readonly AnnotationFormat[] {
  return namedKeysIn(annotations).flatMap((key) =>
    NAMED_ROWS.filter((row) => row.matches?.test(key) === true && isSpoken(row, key, annotations, macs)).map(
      (row) => ({ ...row, key }),
    ),
  );
}

function isSpoken(
  format: AnnotationFormat | ReadRow,
  key: string,
  annotations: Labels,
  macs: MacChoice,
): boolean {
  if (!("means" in format)) return true;
  if (format.asks === "mac" && macs === "no macs") return false;
  return !isNoRequest(format, annotations[key] ?? "", annotations, key);
}
