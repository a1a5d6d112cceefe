// SPDX-License-Identifier: Apache-2.0
// What a pod's annotations say of its networks: the "Kubernetes Network Custom Resource Definition De-facto Standard", as Multus reads it.

import type { Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { isObject } from "../base/validation.ts";
import { FIRST_INTERFACE } from "../model/interfaces.ts";
import { bad } from "./annotation-values.ts";
import { asGoReads, Fields, isName } from "./fields.ts";

/** Multus' list of a pod's further interfaces. */
export const NETWORKS = "k8s.v1.cni.cncf.io/networks";
/** Multus takes this one for a pod's first interface, in place of the cluster's. */
export const DEFAULT_NETWORK = "v1.multus-cni.io/default-network";
export const NETWORK_ANNOTATIONS: readonly string[] = [NETWORKS, DEFAULT_NETWORK];

/** An interface of a pod, and the NetworkAttachmentDefinition that makes it. */
export interface NetworkAttachment {
  /** namespace/name */
  readonly network: string;
  readonly interface: string;
}

/** Far beyond what a pod can use: whatever is longer was written to cost time. An interface takes some 100 characters. */
const LONGEST_VALUE = 64 * 1024;
const MOST_NETWORKS = 64;

/** Why a pod's networks are not read. */
export function networksObjection(annotations: Labels): Refusal | undefined {
  for (const key of NETWORK_ANNOTATIONS) {
    const read = itemsIn(annotations[key]);
    if (read === "too long") return bad(key, `it is longer than ${LONGEST_VALUE} characters`);
    if (read === "too many") return bad(key, `it names more than ${MOST_NETWORKS} networks`);
  }
  return undefined;
}

/** Nothing that cannot be read is guessed: Multus refuses such a pod. Of what is too long, too, nothing is read. */
export function networkAttachments(annotations: Labels, namespace: string): readonly NetworkAttachment[] {
  const attachmentsIn = (key: string) =>
    networkElements(key, annotations[key]).flatMap(({ interface: name, item }) =>
      isName(item.name) ? [{ network: networkOf(item, namespace), interface: name }] : [],
    );
  return [...attachmentsIn(DEFAULT_NETWORK).slice(0, 1), ...attachmentsIn(NETWORKS)];
}

function networkOf({ namespace, name }: Item, own: string): string {
  return `${namespace === "" ? own : namespace}/${name}`;
}

/** One network of an annotation. */
export interface NetworkElement {
  /** As the element says, or as Multus calls it by its place. */
  readonly interface: string;
  readonly item: Item;
}

interface Item {
  readonly namespace: string;
  readonly name: string;
  readonly interface: string;
  /** As they are written: addresses, with a prefix or without. In place of a list something else is an entry that is no text. */
  readonly ips: readonly unknown[];
  readonly mac: string;
  /** As JSON, whichever form it is written in; undefined: it is no object. */
  readonly json: object | undefined;
}

/** In either form, in their order; none of what cannot be read. */
export function networkElements(key: string, value: string | undefined): readonly NetworkElement[] {
  const items = itemsIn(value);
  if (typeof items === "string") return [];
  return items.map((item, at) => ({ interface: item.interface || interfaceAt(key, at), item }));
}

function interfaceAt(key: string, at: number): string {
  return key === DEFAULT_NETWORK ? FIRST_INTERFACE : `net${at + 1}`;
}

/** The annotation with each element as `change` has it; undefined: nothing changes, or it cannot be read. */
export function withElements(
  key: string,
  value: string | undefined,
  change: (element: NetworkElement) => object | undefined,
): string | undefined {
  const elements = networkElements(key, value);
  if (elements.some(({ item }) => item.json === undefined)) return undefined;
  const changed = elements.map((element) => change(element));
  if (changed.every((one) => one === undefined)) return undefined;
  return JSON.stringify(elements.map(({ item }, at) => changed[at] ?? item.json));
}

/** The annotation without what elements ask for: it still says which networks the pod has. Undefined: that cannot be read. */
export function withoutAsked(key: string, value: string): string | undefined {
  return withElements(key, value, ({ item }) => ({ ...item.json, ips: [], mac: "" }));
}

/** Its length is looked at before anything else is: an API server asks about objects of 3 MiB, whatever it takes afterwards. */
function itemsIn(value = ""): readonly Item[] | "too long" | "too many" {
  if (value.length > LONGEST_VALUE) return "too long";
  const text = value.trim();
  if (text === "") return [];
  const items = isJsonForm(text) ? jsonItems(text) : text.split(",", MOST_NETWORKS + 1).map(shortItem);
  return items.length > MOST_NETWORKS ? "too many" : items;
}

/** `[namespace/]name[@interface]` */
function shortItem(text: string): Item {
  const [network = "", link = ""] = text.trim().split("@", 2);
  const [name = "", namespace = ""] = network.split("/").reverse();
  const json = { name, ...(namespace && { namespace }), ...(link && { interface: link }) };
  return { namespace, name, interface: link, ips: [], mac: "", json };
}

/** Multus takes what has one of these in it for JSON, and anything else for names. */
export function isJsonForm(value: string): boolean {
  return /[[{"]/.test(value);
}

/** What Multus refuses: it is no list of objects. */
export function isUnreadable(value: string): boolean {
  if (!isJsonForm(value)) return false;
  const items = listIn(value);
  return items === undefined || items.some((item) => !isObject(item));
}

/** Whether no element has anything in the field; false, too, of what cannot be read. */
export function isWithout(field: "ips" | "mac", value: string): boolean {
  return !isUnreadable(value) && networkElements("", value).every(({ item }) => item[field].length === 0);
}

/** The names of all fields of all elements, as they are written; none where the value cannot be read. */
export function elementKeysIn(value: string): readonly string[] {
  return isJsonForm(value) ? (listIn(value) ?? []).filter(isObject).flatMap((item) => Object.keys(item)) : [];
}

function jsonItems(text: string): readonly Item[] {
  return (listIn(text) ?? []).slice(0, MOST_NETWORKS + 1).map((item) => {
    const json = isObject(item) ? asGoReads(item, FIELDS) : undefined;
    const fields = new Fields(json);
    return {
      namespace: fields.text("namespace"),
      name: fields.text("name"),
      interface: fields.text("interface"),
      ips: listOf(fields.get("ips")),
      mac: fields.text("mac").trim() || fields.text("mac"),
      json,
    };
  });
}

const FIELDS = ["namespace", "name", "interface", "ips", "mac"];

function listOf(ips: unknown): readonly unknown[] {
  if (Array.isArray(ips)) return ips;
  return ips === undefined || ips === null || ips === "" ? [] : [[ips]];
}

function listIn(text: string): readonly unknown[] | undefined {
  try {
    const items: unknown = JSON.parse(text);
    return Array.isArray(items) ? items : undefined;
  } catch {
    return undefined;
  }
}
