// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { isObject, quote } from "../base/validation.ts";
import type { PodState, WorkloadState } from "../model/cluster-state.ts";
import type { PodMetadata, PodOwner } from "../model/identity.ts";
import { mostEntries, readRequest } from "./annotations.ts";
import { Fields, isName } from "./fields.ts";
import { hasUnreadOrdinals, leavesOutOrdinals, reservedOrdinalsOf } from "./reserved-ordinals.ts";
import { rollingOf } from "./rolling-update.ts";

export { Fields, isName };

/** Metadata of any Kubernetes object; texts that are absent are empty. */
interface ObjectMeta {
  readonly name: string;
  readonly generateName: string;
  readonly namespace: string;
  readonly uid: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  /** The controller; an owner that controls nothing only keeps the object from the garbage collector. */
  readonly owner?: PodOwner;
}

/** An object as it came, and what of it was read. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly spec: Fields;
  readonly json: Fields;
}

/** What is wrong with the parts that are read as maps: one that is none, and a label or annotation that is no text. */
export function malformedField({ json }: KubeObject): string | undefined {
  if (!isObject(json.get("metadata"))) return "metadata must be an object";
  if (!isMapOrAbsent(json.get("spec"))) return "spec must be an object";
  const template = json.at("spec").at("template").at("metadata");
  return oddTexts(json.at("metadata"), "metadata") ?? oddTexts(template, "spec.template.metadata");
}

function oddTexts(meta: Fields, field: string): string | undefined {
  for (const part of ["annotations", "labels"]) {
    if (!isMapOrAbsent(meta.get(part))) return `${field}.${part} must be an object`;
    const odd = Object.entries(meta.at(part).value).find(([, value]) => !isTextOrNull(value));
    if (odd !== undefined)
      return `${field}.${part}[${quote(odd[0])}] must be text, not ${quote(odd[1])}; write it in quotes`;
  }
  return undefined;
}

function isTextOrNull(value: unknown): boolean {
  return typeof value === "string" || value === null;
}

function isMapOrAbsent(value: unknown): boolean {
  return value === undefined || value === null || isObject(value);
}

/** Reads the outside of an object; OBJECT_INVALID when it is none. What is inside is read by whoever needs it. */
export function readObject(value: unknown): KubeObject | Refusal {
  const json = new Fields(value);
  const kind = json.text("kind");
  if (kind === "") return refuse("OBJECT_INVALID", "the object has no kind");
  const meta = json.at("metadata");
  const owners = meta.list("ownerReferences").map((reference) => new Fields(reference));
  const owner = owners.find((reference) => reference.flag("controller"));
  return {
    apiVersion: json.text("apiVersion"),
    kind,
    metadata: {
      name: meta.text("name"),
      generateName: meta.text("generateName"),
      namespace: meta.text("namespace"),
      uid: meta.text("uid"),
      labels: meta.texts("labels"),
      annotations: meta.texts("annotations"),
      ...(owner === undefined
        ? {}
        : {
            owner: {
              apiVersion: owner.text("apiVersion"),
              kind: owner.text("kind"),
              name: owner.text("name"),
              uid: owner.text("uid"),
            },
          }),
    },
    spec: json.at("spec"),
    json,
  };
}

/** The condition of that type in its status; undefined: it has none. */
export function conditionOf({ json }: KubeObject, type: string): Fields | undefined {
  const conditions = json.at("status").list("conditions");
  return conditions.map((one) => new Fields(one)).find((one) => one.text("type") === type);
}

export function podMetadata(pod: KubeObject, namespace: string): PodMetadata {
  const { name, generateName, labels, annotations, owner } = pod.metadata;
  return { namespace, name, generateName, labels, annotations, ...(owner === undefined ? {} : { owner }) };
}

export function podState(pod: KubeObject): PodState {
  const { namespace, name, uid, labels, annotations, owner } = pod.metadata;
  const phase = pod.json.at("status").text("phase");
  return {
    ...{ namespace, name, uid, labels, annotations },
    ...(owner === undefined ? {} : { owner }),
    node: pod.spec.text("nodeName"),
    ended: phase === "Succeeded" || phase === "Failed",
    ...(pod.json.at("metadata").text("deletionTimestamp") === "" ? {} : { deleting: true }),
    ...(pod.spec.flag("hostNetwork") ? { onHostNetwork: true } : {}),
  };
}

/** A workload's own facts. `spec.replicas` absent means 1 (apps/v1). */
export function workloadState(object: KubeObject): WorkloadState {
  const { apiVersion, kind } = object;
  const { namespace, name, uid } = object.metadata;
  const template = object.spec.at("template");
  const annotations = template.at("metadata").texts("annotations");
  const reserved = leavesOutOrdinals(object) ? reservedOrdinalsOf(object.spec) : [];
  const isCutOff = leavesOutOrdinals(object) && hasUnreadOrdinals(object.spec);
  return {
    ...{ apiVersion, kind, namespace, name, uid, annotations },
    replicas: object.spec.count(kind === "Job" ? "completions" : "replicas", 1),
    start: object.spec.at("ordinals").count("start", 0),
    ...(reserved.length === 0 ? {} : { reserved }),
    ...(isCutOff ? { isCutOff } : {}),
    hostNetwork: template.at("spec").flag("hostNetwork"),
    ...slotsOf(object, annotations),
    ...(kind === "Job" ? { isDone: doneOf(object.json.at("status")) } : {}),
  };
}

function slotsOf(object: KubeObject, annotations: Labels): Pick<WorkloadState, "slots" | "rolling"> {
  if (object.kind === "StatefulSet" || object.kind === "Job") return {};
  const request = readRequest(annotations);
  const slots = isRefusal(request) ? mostEntries(annotations) : (request.entries?.length ?? 0);
  if (slots === undefined || slots === 0) return slots === undefined ? {} : { slots };
  return { slots, ...rollingOf(object) };
}

/** batch/v1 JobStatus: `completedIndexes` and `failedIndexes` are texts such as "1,3-5,7". */
function doneOf(status: Fields): (index: number) => boolean {
  const isOver = status.list("conditions").some((condition) => {
    const { type, status: is } = new Fields(condition).value;
    return (type === "Complete" || type === "Failed") && is === "True";
  });
  const spans = [status.text("completedIndexes"), status.text("failedIndexes")]
    .flatMap((text) => (text === "" ? [] : text.split(",")))
    .map((part) => part.split("-").map(Number));
  return (index) => isOver || spans.some(([from = Number.NaN, to = from]) => index >= from && index <= to);
}

const NODE_ADDRESSES = ["InternalIP", "ExternalIP"];

/** Those that others reach the node by, of a Node's status. */
export function nodeAddresses(status: Fields): string[] {
  const listed = status.list("addresses").map((one) => new Fields(one));
  return listed.filter((one) => NODE_ADDRESSES.includes(one.text("type"))).map((one) => one.text("address"));
}
