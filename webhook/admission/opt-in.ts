// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import {
  ANNOTATION_FORMATS,
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
  NAMESPACE_DEFAULTS,
  POOLS,
  STICKY,
} from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { NamespaceState } from "../../allocator/model/cluster-state.ts";
import type { Operation } from "../review/admission-review.ts";

/**
 * The label and its value by which a namespace sends all its pods through Berth. A webhook configuration can select
 * namespaces by labels and by nothing else, so defaults in its annotations and claims made by hand need it.
 */
export const OPT_IN_LABEL = "berth.dev/admission";
export const OPT_IN_VALUE = "enabled";

/** What Berth writes into a pod: nobody's to bring along, and nobody's to change. */
export const ASSIGNED: readonly string[] = [ASSIGNED_CLAIM, ASSIGNED_ADDRESSES, ASSIGNED_TOKEN];

/** The annotations, any of which sends a pod through Berth; the webhook configurations repeat them. */
export const OPT_IN_ANNOTATIONS: readonly string[] = [
  ...ANNOTATION_FORMATS.map(({ key }) => key),
  ...ASSIGNED,
];

export function optsIn(labels: Labels): boolean {
  return labels[OPT_IN_LABEL] === OPT_IN_VALUE;
}

/**
 * What is wrong with a namespace that sets defaults for pods which Berth never sees, as warnings. `served`: annotations of other
 * systems there that Berth would answer.
 */
export function warnIgnoredDefaults(
  operation: Operation,
  { metadata }: KubeObject,
  served: readonly string[],
): string[] {
  const { labels, annotations } = metadata;
  if (operation === "DELETE" || optsIn(labels)) return [];
  const until = `pods without annotations of their own until the namespace has the label ${OPT_IN_LABEL}=${OPT_IN_VALUE}`;
  const own = NAMESPACE_DEFAULTS.filter((key) => annotations[key] !== undefined);
  return [
    ...own.map((key) => `annotation ${key} has no effect on ${until}`),
    ...served.map((key) => `annotation ${key} asks berth, and berth gives nothing for it to ${until}`),
  ];
}

/** What says how an address is kept, or of which family, on a namespace that asks for none. */
export function idleDefaults({ metadata: { annotations } }: KubeObject): string[] {
  if (annotations[POOLS] !== undefined || annotations[STICKY] === "true") return [];
  return NAMESPACE_DEFAULTS.filter((key) => key !== STICKY && annotations[key] !== undefined).map(
    (key) =>
      `annotation ${key} has no effect while the namespace asks for no address: write ${POOLS} or ${STICKY}: "true" beside it`,
  );
}

/** The same of a claim made by hand, whose pod may have no annotation. */
export function warnIgnoredPod(namespace: NamespaceState, claim: string): string[] {
  if (optsIn(namespace.labels)) return [];
  return [
    `a pod ${claim} that asks for nothing is bound to this claim, but may start before that, with another address: ask for these with berth.dev/ips in the pod, or label namespace ${namespace.name} ${OPT_IN_LABEL}=${OPT_IN_VALUE}`,
  ];
}
