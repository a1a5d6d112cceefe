// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import { poolsContaining } from "../../allocator/cache/reader.ts";
import { MIRROR_POD_ANNOTATION } from "../../allocator/demand/pod-allocation.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { ASSIGNED } from "../../allocator/manifest/opt-in.ts";
import { requestsOfHost, requestsOfSystem, writtenByOthers } from "../../allocator/manifest/own-keys.ts";
import type { LabelExpression } from "../../allocator/pool/label-selector.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  patched,
} from "../review/admission-review.ts";
import { addNodeAffinity, annotate, applyAndVerify, type PatchOp, pointer } from "../review/json-patch.ts";
import type { AdmissionContext } from "./admission-context.ts";

/** The nodes where every one of the addresses is routed, from the selectors of its pools. */
export function nodesOf(
  { context: { view } }: AdmissionContext,
  addresses: readonly Address[],
): LabelExpression[] {
  return poolsContaining(view, addresses).flatMap((pool) => [
    ...Object.entries(pool.spec.nodeSelector?.matchLabels ?? {}).map(
      ([key, value]): LabelExpression => ({ key, operator: "In", values: [value] }),
    ),
    ...(pool.spec.nodeSelector?.matchExpressions ?? []),
  ]);
}

/** What goes with the addresses: where the pod may run, and what its owner should know. */
interface Besides {
  readonly nodes?: readonly LabelExpression[];
  readonly warnings?: readonly string[];
}

/**
 * The patch, proven on the object before it is sent. Assigned annotations that the pod brought along, from a template
 * or copied from another pod, go: they are ours to write and nobody's to inherit.
 */
export function answer(
  request: AdmissionRequest,
  pod: KubeObject,
  assigned: Labels,
  { nodes = [], warnings = [] }: Besides = {},
): AdmissionResponse {
  const { annotations } = pod.metadata;
  const brought = Object.keys(annotations).filter(
    (key) => ASSIGNED.includes(key) && assigned[key] === undefined,
  );
  const own = Object.entries(annotations).filter(([key]) => !ASSIGNED.includes(key));
  const written: PatchOp[] =
    brought.length > 0
      ? [
          {
            op: "replace",
            path: pointer("metadata", "annotations"),
            value: { ...Object.fromEntries(own), ...assigned },
          },
        ]
      : annotate(pod.json.at("metadata").get("annotations") as Labels | undefined, assigned);
  const ops = [...written, ...addNodeAffinity(pod.json.value, nodes)];
  applyAndVerify(pod.json.value, ops);
  return patched(request.uid, ops, warnings);
}

/**
 * Of a pod that Berth has no part in. On one host it takes away what only Berth may write; in a cluster no webhook is called for a pod on
 * its host's network, and a policy refuses such annotations.
 */
export function answerExempt(
  admission: AdmissionContext,
  request: AdmissionRequest,
  pod: KubeObject,
): AdmissionResponse {
  const idle = idleWarnings(admission, pod);
  const brought = isOnHost(pod) ? writtenByOthers(pod.metadata.annotations, "are removed from this pod") : [];
  if (brought.length === 0) return allowed(request.uid, idle);
  return answer(request, pod, {}, { warnings: [...idle, ...brought] });
}

/** Nobody may change a mirror pod; the other exempt namespaces start without Berth. */
function isOnHost({ metadata: { namespace, annotations }, spec }: KubeObject): boolean {
  const isMirror = Object.hasOwn(annotations, MIRROR_POD_ANNOTATION);
  return spec.flag("hostNetwork") && !isMirror && namespace !== EXEMPT_NAMESPACE;
}

/** Warnings of requests without effect. A mirror pod gets none: a kubelet made it from a file, and nobody would read them. */
function idleWarnings({ dialects }: AdmissionContext, pod: KubeObject): readonly string[] {
  const { namespace, annotations } = pod.metadata;
  if (namespace === EXEMPT_NAMESPACE) return requestsOfSystem(annotations);
  return isOnHost(pod) ? requestsOfHost(annotations, dialects) : [];
}
