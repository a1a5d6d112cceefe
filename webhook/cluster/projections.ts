// SPDX-License-Identifier: Apache-2.0
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, ASSIGNED_TOKEN, DIALECTS } from "../../allocator/dialects.ts";
import { BerthError, isRefusal } from "../../allocator/errors.ts";
import { STANDING_ANNOTATIONS, STANDING_LABELS } from "../../allocator/identity.ts";
import type { NamespaceFacts, WorkloadFacts } from "../../allocator/inventory.ts";
import { Fields, type KubeObject, podFacts, readObject, workloadFacts } from "../../allocator/kube-object.ts";
import type { Labels } from "../../allocator/ports.ts";
import { isExempt, MIRROR } from "../../allocator/wish.ts";
import { apiVersionOf, type Item, type Resource } from "../../kube/resource.ts";
import { holesOf } from "./ordinals.ts";
import { PODS } from "./resources.ts";
import type { NodeSeen, PodSeen, WorkloadSeen } from "./seen.ts";

/** KEP-2268: somebody vouches that the node is down and that nothing runs on it. */
export const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";
/** On a Node: an operator vouches for the same, where the taint would do too much. */
export const FENCED = "berth.dev/fenced";

const REQUESTS = DIALECTS.map(({ key }) => key);
const OF_POD = [
  ...REQUESTS,
  ASSIGNED_CLAIM,
  ASSIGNED_ADDRESSES,
  ASSIGNED_TOKEN,
  MIRROR,
  ...STANDING_ANNOTATIONS,
];
/** Shared by the many objects that have nothing to be kept. */
const NONE: Labels = Object.freeze({});

/** Of its labels and annotations only what Berth reads: there may be 100,000 pods. */
export function podSeen(item: Item): PodSeen {
  const pod = objectOf(PODS, item);
  const { labels, annotations } = pod.metadata;
  return {
    ...podFacts(pod),
    labels: only(labels, STANDING_LABELS),
    annotations: only(annotations, OF_POD),
    phase: pod.json.at("status").text("phase"),
    deleting: item.metadata.deletionTimestamp !== undefined,
    exempt: isExempt(pod),
  };
}

/** The object is rebuilt from what is read of it, so that nothing else of it stays in memory. */
export function workloadSeen(resource: Resource, item: Item): WorkloadSeen {
  const { name, namespace, uid, annotations = {} } = item.metadata;
  const spec = new Fields(item).at("spec");
  const template = spec.at("template");
  const meta = template.at("metadata");
  const object = objectOf(resource, {
    metadata: { name, namespace, uid, annotations: only(annotations, REQUESTS) },
    spec: {
      ...parts(spec, ["replicas", "ordinals", "reserveOrdinals", "strategy", "updateStrategy"]),
      template: {
        metadata: { labels: meta.texts("labels"), annotations: only(meta.texts("annotations"), REQUESTS) },
        spec: parts(template.at("spec"), ["hostNetwork", "serviceAccountName"]),
      },
    },
  });
  return { facts: withHoles(workloadFacts(object), object), object };
}

export function namespaceFacts(item: Item): NamespaceFacts {
  const { name, labels = NONE, annotations = NONE } = item.metadata;
  return { name, labels, annotations: only(annotations, REQUESTS) };
}

export function nodeSeen(item: Item): NodeSeen {
  const { name, uid, annotations = NONE } = item.metadata;
  const taints = new Fields(item).at("spec").list("taints");
  const outOfService = taints.some((taint) => new Fields(taint).text("key") === OUT_OF_SERVICE);
  return { name, uid, fenced: outOfService || annotations[FENCED] === "true" };
}

/** The items of a list do not say what they are. */
function objectOf(resource: Resource, item: object): KubeObject {
  const object = readObject({ ...item, kind: resource.kind, apiVersion: apiVersionOf(resource) });
  if (isRefusal(object)) throw new BerthError("INTERNAL", object.message);
  return object;
}

function only(all: Labels, keys: readonly string[]): Labels {
  const kept = keys.flatMap((key) => {
    const value = Object.hasOwn(all, key) ? all[key] : undefined;
    return value === undefined ? [] : [[key, value] as const];
  });
  return kept.length === 0 ? NONE : Object.fromEntries(kept);
}

function parts(of: Fields, keys: readonly string[]): Readonly<Record<string, unknown>> {
  const there = keys.flatMap((key) => {
    const value = of.get(key);
    return value === undefined ? [] : [[key, value] as const];
  });
  return Object.fromEntries(there);
}

/**
 * OpenKruise's StatefulSet leaves ordinals out (`reserveOrdinals`, numbers and ranges "3-5"), so that its last one is
 * higher. What was left out counts as wanted here: that keeps a claim for longer than it need be, and releases none
 * under a pod that comes back.
 */
function withHoles(facts: WorkloadFacts, object: KubeObject): WorkloadFacts {
  const holes = holesOf(object).toSorted((a, b) => a.from - b.from);
  let end = facts.start + facts.replicas;
  let counted = facts.start;
  for (const { from, to } of holes) {
    const first = Math.max(from, counted);
    if (first >= end) break;
    if (to < first) continue;
    end += to - first + 1;
    counted = to + 1;
  }
  return { ...facts, replicas: end - facts.start };
}
