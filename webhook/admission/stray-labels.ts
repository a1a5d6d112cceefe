// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { mayBeStray, strayLabels } from "../../allocator/manifest/own-keys.ts";
import type { LabelSelector } from "../../allocator/pool/label-selector.ts";

/** Warnings of labels in Berth's name that ask for nothing. `where`: an annotation would stand there. */
export function toldOfLabels(
  view: Pick<RecordReader, "pools">,
  labels: Labels,
  where?: string,
): readonly string[] {
  if (!hasStrayLabels(labels)) return [];
  const selected = new Set(
    view.pools().flatMap(({ spec }) => [...keysOf(spec.namespaceSelector), ...keysOf(spec.podSelector)]),
  );
  return strayLabels(labels, (key) => selected.has(key), where);
}

export function hasStrayLabels(labels: Labels): boolean {
  return Object.keys(labels).some(mayBeStray);
}

function keysOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): string[] {
  return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
}
