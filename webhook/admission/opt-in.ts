// SPDX-License-Identifier: Apache-2.0
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
  DIALECTS,
  POOLS,
  STICKY,
} from "../../allocator/dialects.ts";
import type { NamespaceFacts } from "../../allocator/inventory.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";
import type { Labels } from "../../allocator/ports.ts";
import type { Operation } from "./review.ts";

/**
 * The label and its value by which a namespace sends all its pods through Berth. A webhook configuration can select
 * namespaces by labels and by nothing else, so defaults in its annotations and claims made by hand need it.
 */
export const OPT_IN_LABEL = "berth.dev/admission";
export const OPT_IN_VALUE = "enabled";

/** What Berth writes into a pod: nobody's to bring along, and nobody's to change. */
export const ASSIGNED: readonly string[] = [ASSIGNED_CLAIM, ASSIGNED_ADDRESSES, ASSIGNED_TOKEN];

/** The annotations, any of which sends a pod through Berth; the webhook configurations repeat them. */
export const OPT_IN_ANNOTATIONS: readonly string[] = [...DIALECTS.map(({ key }) => key), ...ASSIGNED];

/** Defaults for the pods of a namespace. */
const DEFAULTS: readonly string[] = [POOLS, STICKY];

function optsIn(labels: Labels): boolean {
  return labels[OPT_IN_LABEL] === OPT_IN_VALUE;
}

/** What is wrong with a namespace that sets defaults for pods which Berth never sees, as warnings. */
export function unseenDefaults(operation: Operation, { metadata }: KubeObject): string[] {
  const { labels, annotations } = metadata;
  if (operation === "DELETE" || optsIn(labels)) return [];
  return DEFAULTS.filter((key) => annotations[key] !== undefined).map(
    (key) =>
      `annotation ${key} has no effect on pods without annotations of their own until the namespace has the label ${OPT_IN_LABEL}=${OPT_IN_VALUE}`,
  );
}

/** The same of a claim made by hand, whose pod may have no annotation. */
export function unseenPod(namespace: NamespaceFacts, claim: string): string[] {
  if (optsIn(namespace.labels)) return [];
  return [
    `pod ${claim} gets these addresses if it asks for them itself, with an annotation such as berth.dev/ips, or once namespace ${namespace.name} has the label ${OPT_IN_LABEL}=${OPT_IN_VALUE}`,
  ];
}
