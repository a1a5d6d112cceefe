// SPDX-License-Identifier: Apache-2.0

import { NAMESPACE_DEFAULTS, POOLS, STICKY } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { OPT_IN_LABEL, OPT_IN_VALUE, optsIn } from "../../allocator/manifest/opt-in.ts";
import type { NamespaceState } from "../../allocator/model/cluster-state.ts";
import type { Operation } from "../review/admission-review.ts";

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
