// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { LABEL_ROWS } from "../../allocator/manifest/dialects.ts";
import { mayBeStray, strayLabels } from "../../allocator/manifest/own-keys.ts";
import { SYSTEMS } from "../../allocator/model/dialect.ts";
import type { LabelSelector } from "../../allocator/pool/label-selector.ts";

/** Warnings of labels that ask for nothing, in Berth's name or another system's. `where`: an annotation would stand there. */
export function warningsOfLabels(
  view: Pick<RecordReader, "pools">,
  labels: Labels,
  where?: string,
): readonly string[] {
  if (!hasStrayLabels(labels)) return [];
  const selected = new Set(
    view.pools().flatMap(({ spec }) => [...keysOf(spec.namespaceSelector), ...keysOf(spec.podSelector)]),
  );
  return [...strayLabels(labels, (key) => selected.has(key), where), ...othersLabels(view, labels, where)];
}

/** Of those that name a pool of Berth's: any other is for the system whose label it is. */
function othersLabels(
  view: Pick<RecordReader, "pools">,
  labels: Labels,
  where = "metadata.annotations",
): readonly string[] {
  return LABEL_ROWS.flatMap(({ key, system }) => {
    const value = labels[key];
    if (!view.pools().some(({ name }) => name === value)) return [];
    return [
      `label ${key} is ${SYSTEMS[system]}'s, and berth reads it as an annotation alone; write it under ${where} to get an address of pool ${value}`,
    ];
  });
}

export function hasStrayLabels(labels: Labels): boolean {
  return Object.keys(labels).some((key) => mayBeStray(key) || LABEL_ROWS.some((row) => row.key === key));
}

function keysOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): string[] {
  return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
}
