// SPDX-License-Identifier: Apache-2.0
// What other systems' annotations ask for each interface: it may be of another network, with an IPAM of its own.

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { RecordReader } from "../cache/reader.ts";
import { readRequest } from "../manifest/annotations.ts";
import { isUnserved } from "../manifest/dialect-values.ts";
import { choiceFor, isNoRequest, namedKeysIn, type ReadRow, rowsOf } from "../manifest/dialects.ts";
import { type AnnotationFormat, LONGEST_VALUE, readOne } from "../manifest/merged-request.ts";
import {
  NETWORKS,
  type NetworkElement,
  networkElements,
  withElements,
  withoutAsked,
} from "../manifest/network-attachments.ts";
import { addressOf } from "../manifest/network-values.ts";
import { interfacesMeant, providerOf } from "../manifest/nic-keys.ts";
import { poolsNamed, type Request, requestsAddress, requestsAddressOn } from "../model/address-request.ts";
import type { Dialects } from "../model/dialect.ts";
import { FIRST_INTERFACE } from "../model/interfaces.ts";
import { partOf } from "../planning/pool-sources.ts";
import { leftWords } from "./left-words.ts";
import { namesOwnIn } from "./named-in-text.ts";
import { withOwnMacs } from "./own-macs.ts";

export type PoolView = Pick<RecordReader, "pools" | "poolOf" | "poolRecords">;

/** Whose annotations they are: of a pod in the namespace. */
interface Place {
  readonly dialects: Dialects | undefined;
  readonly namespace: string;
}

interface Own {
  readonly annotations: Labels;
  /** What is left to other systems, in words. */
  readonly left: readonly string[];
}

/** The annotations without what is asked for an interface that is none of Berth's, whatever else the pod asks for. */
export function ofOwnInterfaces(view: PoolView, annotations: Labels, place: Place): Own {
  const networks = withOwnNetworks(view, annotations, place);
  const nics = withOwnNics(view, networks.annotations, place);
  return {
    annotations: withOwnMacs(view, nics.annotations, place.dialects, place.namespace),
    left: [...networks.left, ...nics.left],
  };
}

/** Of Multus' list: an element whose addresses are in no pool of Berth is left to its network, if nothing else asks for the interface. */
function withOwnNetworks(view: PoolView, annotations: Labels, { dialects, namespace }: Place): Own {
  const value = annotations[NETWORKS] ?? "";
  const isAsking = rowsOf(NETWORKS).some(
    (row) => row.asks === "addresses" && !isNoRequest(row, value, annotations),
  );
  if (choiceFor(dialects, NETWORKS) !== "own" || !isAsking) return { annotations, left: [] };
  const isOwn = (ip: unknown) => {
    const address = addressOf(ip);
    // what cannot be read, and names an address of Berth's, is refused
    return address === undefined ? namesOwnIn(view, JSON.stringify(ip)) : view.poolOf(address) !== undefined;
  };
  const bare = withoutAsked(NETWORKS, value);
  const rest = bare === undefined ? annotations : { ...annotations, [NETWORKS]: bare };
  const beside = readRequest(rest, { name: namespace, labels: {}, annotations: {} });
  const isOther = ({ interface: name, item: { ips } }: NetworkElement) =>
    ips.length > 0 && !ips.some(isOwn) && !asksAlso(beside, [name]);
  const others = networkElements(NETWORKS, value).filter(isOther);
  const left = withElements(NETWORKS, value, (element) =>
    isOther(element) ? { ...element.item.json, ips: [] } : undefined,
  );
  if (left === undefined) return { annotations, left: [] };
  const entry = others.flatMap(({ item: { ips } }) => ips.flatMap((ip) => addressOf(ip) ?? []));
  const asked = [{ key: NETWORKS, request: { entries: [entry] } }];
  const whom = `its ${others.map((one) => one.interface).join(", ")}`;
  return { annotations: { ...annotations, [NETWORKS]: left }, left: leftWords(view, asked, whom) };
}

/** Of kube-ovn's keys that name a network: those of one that name nothing of Berth's are left to it, if nothing else asks for the interface. */
function withOwnNics(view: PoolView, annotations: Labels, { dialects, namespace }: Place): Own {
  const keys = namedKeysIn(annotations).filter((key) => choiceFor(dialects, key) === "own");
  if (keys.length === 0) return { annotations, left: [] };
  const asking = keys
    .flatMap((key) => rowsOf(key).map((row) => ({ key, row })))
    .filter(
      ({ key, row }) => row.asks !== "mac" && !isNoRequest(row, annotations[key] ?? "", annotations, key),
    );
  const others = readRequest(without(annotations, keys), { name: namespace, labels: {}, annotations: {} });
  const out = new Set<string>();
  const left: string[] = [];
  for (const [provider, its] of Map.groupBy(asking, ({ key }) => providerOf(key))) {
    const asked = its.map(({ key, row }) => ({
      key,
      request: askedOf({ ...row, key }, annotations, namespace),
    }));
    const isServed = its.some(({ key }) => asksAlso(others, interfacesMeant(key, annotations, namespace)));
    if (isServed || asked.some(({ key, request }) => isOwn(view, request, annotations[key]))) continue;
    for (const { key } of asked) out.add(key);
    left.push(...leftWords(view, asked, `the interface of ${provider}`));
  }
  return { annotations: without(annotations, [...out]), left };
}

/** Whether what else the pod asks for is for one of the interfaces, too. */
function asksAlso(others: Request | Refusal, names: readonly string[] | Refusal): boolean {
  if (isRefusal(others) || isRefusal(names)) return false;
  const { interfaces, interfacePools } = others;
  if (interfaces === undefined && interfacePools === undefined)
    return requestsAddress(others) && names.includes(FIRST_INTERFACE);
  return names.some((name) => requestsAddressOn(others, name));
}

export function without(annotations: Labels, keys: readonly string[]): Labels {
  if (keys.length === 0) return annotations;
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !keys.includes(key)));
}

/** What the annotation asks for, whether or not Berth could serve it. */
export function askedOf(
  format: AnnotationFormat | ReadRow,
  annotations: Labels,
  namespace?: string,
): Request | Refusal {
  const read = readOne(format, annotations, namespace);
  return isUnserved(read) ? read.asks : read;
}

/** What is too long to be looked through is Berth's to refuse. */
export function isOwn(view: PoolView, request: Request | Refusal, value = ""): boolean {
  if (!isRefusal(request)) return namesPoolOf(view, request);
  return value.length > LONGEST_VALUE || namesOwnIn(view, value);
}

function namesPoolOf(view: PoolView, request: Request): boolean {
  const { entries = [] } = request;
  return (
    entries.flat().some((address) => view.poolOf(address) !== undefined) ||
    poolsNamed(request).some((name) => [...view.pools()].some((pool) => partOf(pool, name) !== undefined))
  );
}
