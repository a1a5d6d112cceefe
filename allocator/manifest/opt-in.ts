// SPDX-License-Identifier: Apache-2.0
// Which pods the API server sends to Berth.

import type { Labels } from "../base/ports.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
  REVIEWED_REQUEST,
  requestKeysIn,
} from "./annotations.ts";

/**
 * The label and its value by which a namespace sends all its pods through Berth. A webhook configuration can select
 * namespaces by labels and by nothing else, so defaults in its annotations and claims made by hand need it.
 */
export const OPT_IN_LABEL = "berth.dev/admission";
export const OPT_IN_VALUE = "enabled";

/** What Berth writes into a pod: nobody's to bring along, and nobody's to change. */
export const ASSIGNED: readonly string[] = [
  ASSIGNED_CLAIM,
  ASSIGNED_ADDRESSES,
  ASSIGNED_TOKEN,
  REVIEWED_REQUEST,
];

export function optsIn(labels: Labels): boolean {
  return labels[OPT_IN_LABEL] === OPT_IN_VALUE;
}

/** Without an annotation of its own a pod comes to admission only where its namespace has the label. */
export function isSentToBerth(annotations: Labels, namespaceLabels: Labels): boolean {
  return optsIn(namespaceLabels) || optingKeysIn(annotations).length > 0;
}

/** Which of a pod's annotations send it through Berth. */
export function optingKeysIn(annotations: Labels): readonly string[] {
  return [...requestKeysIn(annotations), ...ASSIGNED.filter((key) => annotations[key] !== undefined)];
}
