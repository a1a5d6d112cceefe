// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { RecordReader } from "../cache/reader.ts";
import { ANNOTATION_FORMATS, IPS, NAMESPACE_FORMATS, POOLS, readRequest } from "../manifest/annotations.ts";
import { isUnserved } from "../manifest/dialect-values.ts";
import {
  choiceFor,
  dialectKeysIn,
  NAMESPACE_DIALECT_KEYS,
  READ_ROWS,
  withoutDialects,
  withoutUnread,
} from "../manifest/dialects.ts";
import { type AnnotationFormat, LONGEST_VALUE, readOne } from "../manifest/merged-request.ts";
import { type Request, requestsAddress } from "../model/address-request.ts";
import type { NamespaceState } from "../model/cluster-state.ts";
import { type DialectChoice, type Dialects, SYSTEMS, type System } from "../model/dialect.ts";
import { partOf, poolNameIn } from "../planning/pool-choice.ts";
import { namesOwnIn } from "./named-in-text.ts";

type View = Pick<RecordReader, "pools" | "poolOf">;

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
  view: View,
  annotations: Labels,
  namespace: NamespaceState,
  dialects?: Dialects,
): OwnAnnotations {
  const read = withoutUnread(annotations, dialects);
  const space = ownDefaults(view, namespace, dialects);
  const keys = dialectKeysIn(read).filter((key) => choiceFor(dialects, key) === "own");
  const all = { annotations: read, namespace: space, left: [] };
  if (keys.length === 0) return all;
  const rest = withoutDialects(read, isOwnChoice, dialects);
  const otherwise = readRequest(rest, space);
  if (isRefusal(otherwise) || requestsAddress(otherwise)) return all;
  const asked = keys.map((key) => ({ key, request: askedUnder(key, read) }));
  if (asked.some(({ key, request }) => isOwn(view, request, read[key]))) return all;
  return { annotations: rest, namespace: space, left: leftWords(asked) };
}

/** A namespace's defaults in the words of another system are that system's, unless they name a pool of Berth's. */
export function ownDefaults(view: View, namespace: NamespaceState, dialects?: Dialects): NamespaceState {
  const { annotations } = namespace;
  const read = withoutUnread(annotations, dialects);
  const keys = dialectKeysIn(read, NAMESPACE_DIALECT_KEYS).filter(
    (key) => choiceFor(dialects, key) === "own",
  );
  const isOwn = keys.some((key) => {
    const request = askedUnder(key, read, NAMESPACE_FORMATS);
    return !isRefusal(request) && namesPoolOf(view, request);
  });
  const own = keys.length === 0 || isOwn ? read : withoutDialects(read, isOwnChoice, dialects);
  return own === annotations ? namespace : { ...namespace, annotations: own };
}

/** Which of a namespace's annotations in other systems' words Berth answers. */
export function servedDefaults(view: View, annotations: Labels, dialects?: Dialects): readonly string[] {
  const space = { name: "", labels: {}, annotations: withoutUnread(annotations, dialects) };
  const own = ownDefaults(view, space, dialects).annotations;
  return dialectKeysIn(own, NAMESPACE_DIALECT_KEYS);
}

/** What of a namespace's annotations is left to other systems, in words. */
export function leftDefaults(view: View, annotations: Labels, dialects?: Dialects): readonly string[] {
  const space = { name: "", labels: {}, annotations: withoutUnread(annotations, dialects) };
  const own = ownDefaults(view, space, dialects).annotations;
  const keys = dialectKeysIn(space.annotations, NAMESPACE_DIALECT_KEYS).filter(
    (key) => own[key] === undefined,
  );
  return leftWords(
    keys.map((key) => ({ key, request: askedUnder(key, annotations, NAMESPACE_FORMATS) })),
    "its pods",
  );
}

function isOwnChoice(choice: DialectChoice | undefined): boolean {
  return choice === "own";
}

/** What the annotation asks for, whether or not Berth could serve it. */
function askedUnder(
  key: string,
  annotations: Labels,
  formats: readonly AnnotationFormat[] = ANNOTATION_FORMATS,
): Request | Refusal {
  const format = formats.find((one) => one.key === key);
  const read = format === undefined ? {} : readOne(format, annotations);
  return isUnserved(read) ? read.asks : read;
}

/** What is too long to be looked through is Berth's to refuse. */
function isOwn(view: View, request: Request | Refusal, value = ""): boolean {
  if (!isRefusal(request)) return namesPoolOf(view, request);
  return value.length > LONGEST_VALUE || namesOwnIn(view, value);
}

function namesPoolOf(view: View, { entries = [], pools = [] }: Request): boolean {
  return (
    entries.flat().some((address) => view.poolOf(address) !== undefined) ||
    pools.some((name) => [...view.pools()].some((pool) => partOf(pool, name) !== undefined))
  );
}

interface Asked {
  readonly key: string;
  readonly request: Request | Refusal;
}

function leftWords(asked: readonly Asked[], whom = "this pod"): readonly string[] {
  const bySystem = Map.groupBy(asked, ({ key }) => READ_ROWS.find((row) => row.key === key)?.system);
  return [...bySystem].flatMap(([system, its]) => (system === undefined ? [] : [words(system, its, whom)]));
}

function words(system: System, asked: readonly Asked[], whom: string): string {
  const isUnread = asked.some(({ request }) => isRefusal(request));
  const requests = asked.map(({ request }) => (isRefusal(request) ? {} : request));
  const entries = requests.flatMap((one) => one.entries ?? []).flat();
  const pools = requests.flatMap((one) => one.pools ?? []).map(poolNameIn);
  const named = [...new Set([...entries, ...pools])].join(", ");
  const shown = named.length > 100 ? `${named.slice(0, 97)}...` : named;
  const annotations = `annotation ${asked.map(({ key }) => key).join(", ")}`;
  const name = SYSTEMS[system];
  if (named === "" && isUnread)
    return `${annotations} cannot be read by berth, and is left to ${name}; write ${POOLS} to get an address from berth`;
  if (named === "")
    return `${annotations} names no pool of berth's: it is left to ${name}; write ${POOLS} to get an address from berth`;
  const instead = entries.length > 0 ? IPS : POOLS;
  return `${annotations} asks for ${shown}, and berth has no such ${entries.length > 0 ? "address in its pools" : "pool"}: it is left to ${name}, and berth gives ${whom} no address; write ${instead} to get one from berth`;
}
