// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { isExempt, MIRROR_POD_ANNOTATION } from "../../allocator/demand/pod-allocation.ts";
import {
  ANNOTATION_FORMATS,
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
} from "../../allocator/manifest/annotations.ts";
import { keptKeysIn, NAMESPACE_DIALECT_KEYS } from "../../allocator/manifest/dialects.ts";
import {
  Fields,
  type KubeObject,
  nodeAddresses,
  podState,
  readObject,
  workloadState,
} from "../../allocator/manifest/kubernetes-object.ts";
import { NETWORK_ANNOTATIONS, networkAttachments } from "../../allocator/manifest/network-attachments.ts";
import { fenceOf } from "../../allocator/manifest/node-fence.ts";
import { keptOrdinals } from "../../allocator/manifest/reserved-ordinals.ts";
import type { NamespaceState } from "../../allocator/model/cluster-state.ts";
import { IDENTITY_ANNOTATIONS, IDENTITY_LABELS, type PodOwner } from "../../allocator/model/identity.ts";
import { apiVersionOf, type KubeItem, PODS, type Resource } from "../../kube/api/resource.ts";
import { annotatedCidrs } from "./node-annotations.ts";
import type { ObservedNode, ObservedPod, ObservedWorkload } from "./observed-objects.ts";

const REQUESTS = ANNOTATION_FORMATS.map(({ key }) => key);
const IS_REQUEST: ReadonlySet<string> = new Set(REQUESTS);
const DEFAULTS = [...new Set([...REQUESTS, ...keptKeysIn({}, () => true), ...NAMESPACE_DIALECT_KEYS])];
const ALWAYS = [
  ASSIGNED_CLAIM,
  ASSIGNED_ADDRESSES,
  ASSIGNED_TOKEN,
  MIRROR_POD_ANNOTATION,
  ...IDENTITY_ANNOTATIONS,
];
/** Shared by the many objects that have nothing to be kept. */
const NONE: Labels = Object.freeze({});

/** Whether a key of requests is one that the administrator wants read. */
type IsRead = (key: string) => boolean;

const EVERY: IsRead = () => true;

/** Of its labels and annotations only what Berth reads: there may be 100,000 pods. Those that wait for an address are few. */
export function observedPod(item: KubeItem, isRead: IsRead = EVERY): ObservedPod {
  const pod = objectOf(PODS, item);
  const { labels, annotations, owner } = pod.metadata;
  const waits = isWaiting(pod);
  const state = podState(pod);
  return {
    ...state,
    ...(owner === undefined ? {} : { owner: shared(owner) }),
    labels: waits ? labels : only(labels, IDENTITY_LABELS),
    annotations: only(annotations, [
      // most pods have few annotations, and ask for nothing by any of them
      ...Object.keys(annotations).filter((key) => IS_REQUEST.has(key) && isRead(key)),
      ...keptKeysIn(annotations, isRead),
      ...ALWAYS,
    ]),
    up: pod.json.at("status").text("podIP") !== "",
    deleting: state.deleting === true,
    exempt: isExempt(pod),
    ...networksOf(pod, waits),
    ...(pod.spec.flag("hostNetwork") ? {} : addressesOf(pod.json.at("status"))),
  };
}

/** It is on a node and has no address yet: until then all of its labels and networks may decide which pool serves it. */
function isWaiting({ spec, json }: KubeObject): boolean {
  const isPlaced = spec.text("nodeName") !== "" && spec.get("hostNetwork") !== true;
  const status = json.at("status");
  const hasEnded = ["Succeeded", "Failed"].includes(status.text("phase"));
  return isPlaced && !hasEnded && addressesOf(status).addresses === undefined;
}

function networksOf(
  { metadata: { annotations, namespace } }: KubeObject,
  isWaiting: boolean,
): Pick<ObservedPod, "networks" | "attachments"> {
  const attachments = networkAttachments(annotations, namespace);
  const { length: networks } = attachments;
  return networks === 0 ? {} : { networks, ...(isWaiting && { attachments }) };
}

function addressesOf(status: Fields): Pick<ObservedPod, "addresses"> {
  const ips = status.list("podIPs").map((one) => new Fields(one).text("ip"));
  return ips.length === 0 ? {} : { addresses: ips.join() };
}

/** Pods of one owner come one after the other, and share what they say of it. */
const OWNERS = new Map<string, PodOwner>(); // uid -> owner
const MOST_OWNERS = 1_000;

function shared(owner: PodOwner): PodOwner {
  const known = OWNERS.get(owner.uid);
  if (known !== undefined && isDeepStrictEqual(known, owner)) return known;
  if (OWNERS.size >= MOST_OWNERS) OWNERS.clear();
  OWNERS.set(owner.uid, owner);
  return owner;
}

/** The object is rebuilt from what is read of it, so that nothing else of it stays in memory. */
export function observedWorkload(
  resource: Resource,
  item: KubeItem,
  isRead: IsRead = EVERY,
): ObservedWorkload {
  const requests = REQUESTS.filter(isRead);
  const kept = (all: Labels) => only(all, [...requests, ...keptKeysIn(all, isRead), ...NETWORK_ANNOTATIONS]);
  const { name, namespace, uid, annotations = {} } = item.metadata;
  const spec = new Fields(item).at("spec");
  const template = spec.at("template");
  const meta = template.at("metadata");
  const asked = kept(meta.texts("annotations"));
  const exchanged = asked === NONE || resource.kind === "StatefulSet" ? [] : ["strategy", "updateStrategy"];
  const object = objectOf(resource, {
    metadata: { name, namespace, uid, annotations: kept(annotations) },
    spec: {
      ...parts(spec, ["replicas", "completions", "ordinals", ...exchanged]),
      ...keptOrdinals({ apiVersion: apiVersionOf(resource), kind: resource.kind }, spec),
      template: {
        metadata: {
          labels: meta.texts("labels"),
          annotations: asked,
        },
        spec: {
          ...parts(template.at("spec"), ["hostNetwork", "serviceAccountName", "nodeName", "nodeSelector"]),
          ...requiredAffinity(template.at("spec")),
        },
      },
    },
    ...(resource.kind === "Job" ? parts(new Fields(item), ["status"]) : {}),
  });
  return { facts: workloadState(object), object };
}

export function namespaceFacts(item: KubeItem, isRead: IsRead = EVERY): NamespaceState {
  const { name, labels = NONE, annotations = NONE } = item.metadata;
  const terminating = item.metadata.deletionTimestamp === undefined ? {} : { terminating: true as const };
  return { name, labels, annotations: only(annotations, DEFAULTS.filter(isRead)), ...terminating };
}

export function observedNode(item: KubeItem): ObservedNode {
  const { name, uid, labels = NONE, annotations = NONE } = item.metadata;
  const spec = new Fields(item).at("spec");
  const fenced = fenceOf(annotations, spec) !== undefined;
  const addresses = nodeAddresses(new Fields(item).at("status")).join();
  const podCIDRs = spec.list("podCIDRs").join();
  const annotatedCIDRs = podCIDRs === "" ? annotatedCidrs(annotations).join() : "";
  return {
    ...{ name, uid, fenced, labels },
    ...(podCIDRs === "" ? {} : { podCIDRs }),
    ...(annotatedCIDRs === "" ? {} : { annotatedCIDRs }),
    ...(addresses === "" ? {} : { addresses }),
  };
}

/** The items of a list do not say what they are. */
function objectOf(resource: Resource, item: object): KubeObject {
  const object = readObject({ ...item, kind: resource.kind, apiVersion: apiVersionOf(resource) });
  if (isRefusal(object)) throw new BerthError("INTERNAL", object.message);
  return object;
}

function only(all: Labels, keys: readonly string[]): Labels {
  const kept = keys.filter((key) => Object.hasOwn(all, key) && all[key] !== undefined);
  return kept.length === 0 ? NONE : Object.fromEntries(kept.map((key) => [key, all[key] ?? ""]));
}

function requiredAffinity(spec: Fields): object {
  const required = "requiredDuringSchedulingIgnoredDuringExecution";
  const terms = spec.at("affinity").at("nodeAffinity").get(required);
  return terms === undefined ? {} : { affinity: { nodeAffinity: { [required]: terms } } };
}

function parts(of: Fields, keys: readonly string[]): Readonly<Record<string, unknown>> {
  const there = keys.flatMap((key) => {
    const value = of.get(key);
    return value === undefined ? [] : [[key, value] as const];
  });
  return Object.fromEntries(there);
}
