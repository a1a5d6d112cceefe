// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../base/errors.ts";
import { nearestWord } from "../base/nearest-word.ts";
import type { Labels } from "../base/ports.ts";
import type { Dialects } from "../model/dialect.ts";
import {
  ANNOTATION_FORMATS,
  EXEMPT_NAMESPACE,
  FALLBACK,
  FAMILIES,
  IPS,
  MAC,
  NAMESPACE_DEFAULTS,
  POOLS,
  RETAIN,
  STICKY,
  TTL,
  WHEN_DELETED,
  WHEN_SCALED,
} from "./annotations.ts";
import { dialectKeysIn, isReadWith, namedKeysIn, READ_ROWS, rowsOf } from "./dialects.ts";
import { ASSIGNED } from "./opt-in.ts";

/** What keys of Berth's own begin with. Nobody else writes such keys, so that one that is not known is a mistake. */
export const OWN_PREFIX = "berth.dev/";

/** Berth's own annotations that ask for something: they are read when a pod is created. */
export const OWN_REQUESTS: readonly string[] = ANNOTATION_FORMATS.map(({ key }) => key).filter(isOwn);

/** Where an annotation may stand. `Pod` is a template, too. */
export type Carrier = "Pod" | "Namespace" | "IPClaim" | "IPPool";

/** What a copied pod brings along is Berth's own writing, and no mistake. */
const KNOWN: Readonly<Record<Carrier, readonly string[]>> = {
  Pod: [...OWN_REQUESTS, ...ASSIGNED],
  Namespace: NAMESPACE_DEFAULTS,
  IPClaim: [],
  IPPool: [],
};

/** Labels of Berth's own, which do nothing as annotations. */
export const LABELS: readonly string[] = ["berth.dev/admission", "berth.dev/guarded"];
const LABEL_NAMES: readonly string[] = LABELS.map((label) => label.slice(OWN_PREFIX.length));

/** A key of Berth's own that means nothing where it stands, unless it stood there before: what is there may stay. */
export function unknownKey(carrier: Carrier, annotations: Labels, before: Labels = {}): Refusal | undefined {
  const key = Object.keys(annotations).find(
    (one) => isOwn(one) && !KNOWN[carrier].includes(one) && !Object.hasOwn(before, one),
  );
  if (key === undefined) return undefined;
  const shown = key.length > 100 ? `${key.slice(0, 100)}...` : key;
  return refuse("REQUEST_INVALID", `annotation ${shown}: ${adviceOn(carrier, key)}`, { annotation: shown });
}

/** Of what asks for nothing: annotations that Berth writes itself, and that somebody may have written to ask for an address. */
export function writtenByOthers(annotations: Labels, effect: string): string[] {
  const keys = ASSIGNED.filter((key) => Object.hasOwn(annotations, key));
  if (keys.length === 0) return [];
  return [
    `annotations that berth alone writes ask for nothing, and ${effect}: ${keys.join(", ")}; for an address write ${IPS} or ${POOLS}`,
  ];
}

/** They say more about a request, and are none. */
const SAYING_MORE: readonly string[] = [
  ...[FAMILIES, FALLBACK, WHEN_DELETED, WHEN_SCALED, TTL],
  ...READ_ROWS.filter(({ asks, key }) => asks === undefined && key !== RETAIN).map(({ key }) => key),
];
/** Of keys with names in them. */
const saysMore = (key: string) => rowsOf(key).some(({ asks }) => asks === undefined);

/** Of what asks for no address, nor its namespace for it: annotations that only say more about one. */
export function idleRequests(annotations: Labels): string[] {
  const keys = [
    ...SAYING_MORE.filter((key) => Object.hasOwn(annotations, key)),
    ...namedKeysIn(annotations).filter(saysMore),
  ];
  if (keys.length === 0) return [];
  return [
    `${keys.join(", ")} ${keys.length === 1 ? "asks" : "ask"} for no address; write ${IPS}, ${POOLS} or ${STICKY}: "true" beside it`,
  ];
}

/** Of pods of the namespace that Berth keeps away from: annotations that ask for an address of their own. */
export function requestsOfSystem(annotations: Labels): string[] {
  const keys = [IPS, STICKY].filter((key) => Object.hasOwn(annotations, key));
  if (keys.length === 0) return [];
  return [
    `${keys.join(", ")} ${keys.length === 1 ? "asks" : "ask"} for nothing in ${EXEMPT_NAMESPACE}: berth reserves no address for its pods; use another namespace`,
  ];
}

/** Of a pod on its host's network: annotations that ask for an address, of which no CNI plugin ever hears. */
export function requestsOfHost(annotations: Labels, dialects?: Dialects): string[] {
  const own = Object.keys(annotations).filter((key) => isOwn(key) && !ASSIGNED.includes(key));
  const keys = [...own, ...dialectKeysIn(annotations).filter(isReadWith(dialects))];
  if (keys.length === 0) return [];
  return [
    `${keys.join(", ")} ${keys.length === 1 ? "asks" : "ask"} for nothing beside hostNetwork: such a pod has the addresses of its node; take one of the two away`,
  ];
}

/** Labels in Berth's name that are compared with what may have been meant, which costs; an object has a few at most. */
const MOST_COMPARED = 16;

/**
 * Labels that ask for nothing: annotations that were written in the wrong place, and near misses of Berth's own labels. One that
 * a pool selects by is nobody's mistake. `where`: the annotation belongs there.
 */
export function strayLabels(
  labels: Labels,
  isSelected: (key: string) => boolean,
  where = "metadata.annotations",
): string[] {
  const keys = Object.keys(labels).filter((key) => mayBeStray(key) && !isSelected(key));
  const warnings = warningsOfStray(keys.slice(0, MOST_COMPARED), where);
  const more = keys.length - MOST_COMPARED;
  if (more === 1) warnings.push(`1 more label begins with ${OWN_PREFIX}, and asks for nothing`);
  if (more > 1) warnings.push(`${more} more labels begin with ${OWN_PREFIX}, and ask for nothing`);
  return warnings;
}

function warningsOfStray(keys: readonly string[], where: string): string[] {
  return keys.flatMap((key) => {
    const shown = key.length > 100 ? `${key.slice(0, 100)}...` : key;
    if (OWN_REQUESTS.includes(key))
      return [`label ${shown} has no effect: it is an annotation; write it under ${where}`];
    const label = nearestWord(key.slice(OWN_PREFIX.length), LABEL_NAMES);
    if (label !== undefined) return [`berth knows no label ${shown}; did you mean ${OWN_PREFIX}${label}?`];
    const meant = meantBy(key);
    if (meant === undefined) return [];
    return [`label ${shown} has no effect; did you mean the annotation ${meant}? Write it under ${where}`];
  });
}

/** Whether a label may be one of those; the webhook configurations repeat it. */
export function mayBeStray(key: string): boolean {
  return isOwn(key) && !LABELS.includes(key);
}

/** In any case: an API server keeps `Berth.dev/ips`, which nobody reads. */
function isOwn(key: string): boolean {
  return key.toLowerCase().startsWith(OWN_PREFIX);
}

function adviceOn(carrier: Carrier, key: string): string {
  if (LABELS.includes(key))
    return "it is a label, and does nothing as an annotation; write it under metadata.labels";
  if (carrier === "IPClaim")
    return "berth reads no annotations of a claim; write what you want into its spec, and remove the annotation";
  if (carrier === "IPPool")
    return "berth reads no annotations of a pool; write what you want into its spec, and remove the annotation";
  if (carrier === "Namespace" && ASSIGNED.includes(key))
    return "berth writes it into pods, and it does nothing on a namespace; remove it";
  if (carrier === "Namespace" && key === FALLBACK)
    return `it is about the address that a pod names; write it into the pod, beside ${IPS}`;
  if (carrier === "Namespace" && key === MAC)
    return `a MAC address belongs to one pod; write it into the pod, beside ${IPS} or ${POOLS}`;
  const meant = meantBy(key);
  const known = carrier === "Pod" ? OWN_REQUESTS : KNOWN[carrier];
  if (carrier === "Namespace" && meant === IPS)
    return `an address belongs to one pod; write ${IPS} into the pod, or ${POOLS} here for pods that ask for nothing`;
  return meant === undefined
    ? `berth knows no such annotation; known here: ${known.join(", ")}`
    : `berth knows no such annotation; did you mean ${meant}?`;
}

/** The key that was probably meant: one that is written nearly the same, or one of the same thing. */
function meantBy(key: string): string | undefined {
  const name = key.slice(OWN_PREFIX.length);
  const near = nearestWord(
    name,
    OWN_REQUESTS.map((one) => one.slice(OWN_PREFIX.length)),
  );
  return near === undefined ? SAME_THING.find(([form]) => form.test(name))?.[1] : `${OWN_PREFIX}${near}`;
}

/** Names that other systems have for the same. */
const SAME_THING: readonly (readonly [RegExp, string])[] = [
  [/pool/i, POOLS],
  [/famil/i, FAMILIES],
  [/^(?:static|fixed)?-?(?:ip|addr)/i, IPS],
];
