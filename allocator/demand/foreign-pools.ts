// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { NAMESPACE_FORMATS, POOLS, readRequest } from "../manifest/annotations.ts";
import {
  choiceFor,
  defaultKeysIn,
  dialectKeysIn,
  macKeysIn,
  rowsOf,
  withoutDialects,
  withoutUnread,
} from "../manifest/dialects.ts";
import type { OwnReader } from "../manifest/pod-claim.ts";
import { type Request, requestsAddress, requestsAddressOn } from "../model/address-request.ts";
import type { NamespaceState } from "../model/cluster-state.ts";
import { type DialectChoice, type Dialects, SYSTEMS } from "../model/dialect.ts";
import { FIRST_INTERFACE } from "../model/interfaces.ts";
import type { Pool } from "../pool/pool.ts";
import { leftWords } from "./left-words.ts";
import { askedOf, isOwn, ofOwnInterfaces, type PoolView, without } from "./own-interfaces.ts";
import { saysOwnMac } from "./own-macs.ts";

/** The annotations that Berth answers, and what is left to other systems, in words. */
export interface OwnAnnotations {
  readonly annotations: Labels;
  /** With what of its annotations is for Berth. */
  readonly namespace: NamespaceState;
  readonly left: readonly string[];
}

/**
 * What a pod or template in that namespace asks of Berth. A request in other systems' words alone, none of whose addresses or
 * pools is Berth's, is those systems' matter where the administrator says so (`own`).
 *
 * | asks Berth as well, or its namespace does | all of it is Berth's: the two must not give it different addresses |
 * | one of the addresses or pools is Berth's  | Berth's; to refuse, where it cannot be read                        |
 * | none is, whether or not it can be read    | left                                                               |
 */
export function ownAnnotations(
  view: PoolView,
  annotations: Labels,
  namespace: NamespaceState,
  dialects?: Dialects,
): OwnAnnotations {
  const place = { dialects, namespace: namespace.name };
  const { annotations: read, left } = ofOwnInterfaces(view, withoutUnread(annotations, dialects), place);
  const space = ownDefaults(view, namespace, dialects);
  const keys = dialectKeysIn(read).filter((key) => choiceFor(dialects, key) === "own");
  const all = () => ofFirstInterface({ annotations: read, namespace: space, left });
  if (keys.length === 0) return all();
  const rest = withoutDialects(read, isOwnChoice, dialects);
  const otherwise = readRequest(rest, space);
  if (isRefusal(otherwise) || requestsAddress(otherwise)) return all();
  const asked = keys.map((key) => ({ key, request: askedUnder(key, read, namespace.name) }));
  if (asked.some(({ key, request }) => isOwn(view, request, read[key]))) return all();
  return { annotations: rest, namespace: space, left: [...left, ...leftWords(view, asked)] };
}

interface Reading {
  readonly namespace: NamespaceState;
  readonly dialects: Dialects | undefined;
  readonly own: OwnAnnotations;
}

/**
 * Pools, as they are until one changes -> annotations -> what was read. A template may name a thousand addresses, and is asked about for each
 * claim of its workload, in each pass over all claims.
 */
const readings = new WeakMap<readonly Pool[], WeakMap<Labels, Reading>>();

/**
 * The same for those who do not know the pools, and give up addresses by it. As long as one of these cannot be read, as a newer version may
 * have written it, nothing of what they are asked about is known to be another system's. For the same objects the answer is the same object.
 */
export function ownReader({
  view,
  dialects,
}: {
  readonly view: PoolView;
  readonly dialects?: Dialects | undefined;
}): OwnReader {
  return (annotations, namespace) => {
    const pools = view.pools();
    const known = readings.get(pools) ?? new WeakMap<Labels, Reading>();
    readings.set(pools, known);
    const before = known.get(annotations);
    if (before?.namespace === namespace && before.dialects === dialects) return before.own;
    const own = ownUnlessUnreadable(view, annotations, namespace, dialects);
    known.set(annotations, { namespace, dialects, own });
    return own;
  };
}

function ownUnlessUnreadable(
  view: PoolView,
  annotations: Labels,
  namespace: NamespaceState,
  dialects: Dialects | undefined,
): OwnAnnotations {
  const own = ownAnnotations(view, annotations, namespace, dialects);
  const isLess = own.left.length > 0 || own.namespace !== namespace;
  if (!isLess || !hasUnreadable(view)) return own;
  return ownAnnotations(view, annotations, namespace, withAllRead(dialects));
}

/** Each that is read at all is for Berth. */
function withAllRead(dialects: Dialects = {}): Dialects {
  return Object.fromEntries(
    Object.entries(dialects).map(([system, choice]) => [system, choice === "own" ? "all" : choice]),
  );
}

function hasUnreadable(view: PoolView): boolean {
  const usable = new Set(view.pools().map(({ name }) => name));
  for (const { key } of view.poolRecords?.() ?? []) if (!usable.has(key)) return true;
  return false;
}

/** Families in other systems' words are of the first interface: where nothing asks Berth for that, it is that system's. */
function ofFirstInterface(own: OwnAnnotations): OwnAnnotations {
  const { annotations, namespace, left } = own;
  const keys = dialectKeysIn(annotations).filter((key) => rowsOf(key).some((row) => row.ofFirst === true));
  if (keys.length === 0) return own;
  const request = readRequest(annotations, namespace, "macs");
  if (isRefusal(request) || !requestsAddress(request)) return own;
  if (requestsAddressOn(request, FIRST_INTERFACE)) return own;
  const words = keys.map((key) => {
    const system = SYSTEMS[rowsOf(key)[0]?.system ?? "calico"];
    return `annotation ${key} is of ${FIRST_INTERFACE}, for which nothing asks berth: it is left to ${system}; write ${POOLS} for an address of berth's there`;
  });
  return { annotations: without(annotations, keys), namespace, left: [...left, ...words] };
}

/** The keys of other systems under which something is asked for that is Berth's: an address, a pool or a MAC address. */
export function keysOfOwn(view: PoolView, annotations: Labels, namespace: string): readonly string[] {
  const asking = dialectKeysIn(annotations).filter((key) =>
    isOwn(view, askedUnder(key, annotations, namespace), annotations[key]),
  );
  return [
    ...asking,
    ...macKeysIn(annotations).filter((key) => saysOwnMac(view, key, annotations, namespace)),
  ];
}

/** A namespace's defaults in the words of another system are that system's, unless they are for what is Berth's, as with a pod. */
export function ownDefaults(view: PoolView, namespace: NamespaceState, dialects?: Dialects): NamespaceState {
  const { annotations } = namespace;
  const read = withoutUnread(annotations, dialects);
  const keys = defaultKeysIn(read).filter((key) => choiceFor(dialects, key) === "own");
  const areOwn = keys.length === 0 || isBerths(view, { ...namespace, annotations: read }, keys, dialects);
  const own = areOwn ? read : withoutDialects(read, isOwnChoice, dialects);
  return own === annotations ? namespace : { ...namespace, annotations: own };
}

function isBerths(
  view: PoolView,
  namespace: NamespaceState,
  keys: readonly string[],
  dialects: Dialects | undefined,
): boolean {
  const { annotations } = namespace;
  if (keys.some((key) => isOwn(view, defaultUnder(key, annotations), annotations[key]))) return true;
  const rest = { ...namespace, annotations: withoutDialects(annotations, isOwnChoice, dialects) };
  const otherwise = readRequest({}, rest);
  return isRefusal(otherwise) || requestsAddress(otherwise);
}

/** Which of a namespace's annotations in other systems' words Berth answers. */
export function servedDefaults(view: PoolView, annotations: Labels, dialects?: Dialects): readonly string[] {
  const space = { name: "", labels: {}, annotations: withoutUnread(annotations, dialects) };
  const own = ownDefaults(view, space, dialects).annotations;
  return defaultKeysIn(own);
}

/** What of a namespace's annotations is left to other systems, in words. */
export function leftDefaults(view: PoolView, annotations: Labels, dialects?: Dialects): readonly string[] {
  const space = { name: "", labels: {}, annotations: withoutUnread(annotations, dialects) };
  const own = ownDefaults(view, space, dialects).annotations;
  const keys = defaultKeysIn(space.annotations).filter((key) => own[key] === undefined);
  return leftWords(
    view,
    keys.map((key) => ({ key, request: defaultUnder(key, annotations) })),
    "its pods",
  );
}

function isOwnChoice(choice: DialectChoice | undefined): boolean {
  return choice === "own";
}

function askedUnder(key: string, annotations: Labels, namespace: string): Request | Refusal {
  const row = rowsOf(key).find(({ asks }) => asks !== "mac");
  return row === undefined
    ? {}
    : askedOf({ ...row, key, read: row.names ?? row.read }, annotations, namespace);
}

function defaultUnder(key: string, annotations: Labels): Request | Refusal {
  const format = NAMESPACE_FORMATS.find((one) => one.key === key);
  return format === undefined ? {} : askedOf(format, annotations);
}
