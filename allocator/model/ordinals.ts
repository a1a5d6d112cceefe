// SPDX-License-Identifier: Apache-2.0
// Which ordinals a StatefulSet has pods of.

/** Ordinals from `from` to `to`, of which OpenKruise's StatefulSet makes no pods. */
export interface ReservedOrdinals {
  readonly from: number;
  readonly to: number;
}

/** Of a workload (`WorkloadState`). */
interface Ordinals {
  readonly start: number;
  readonly replicas: number;
  readonly reserved?: readonly ReservedOrdinals[];
}

/** Beyond the last ordinal that it has a pod of: what it leaves out before that makes its last one higher. */
export function endOfOrdinals({ start, replicas, reserved = [] }: Ordinals): number {
  let end = start + replicas;
  for (const { from, to } of reserved) {
    const first = Math.max(from, start);
    if (first >= end) break;
    if (to >= first) end += to - first + 1;
  }
  return end;
}

/** Each that it has a pod of, from the first on. */
export function* ordinalsOf({ start, replicas, reserved = [] }: Ordinals): Generator<number> {
  let [ordinal, left] = [start, replicas];
  for (const { from, to } of [...reserved, { from: Number.POSITIVE_INFINITY, to: 0 }]) {
    for (; ordinal < from && left > 0; ordinal++, left--) yield ordinal;
    if (left === 0) return;
    ordinal = Math.max(ordinal, to + 1);
  }
}

/** The same from that one on, of which there may be none; undefined then. */
export function ordinalFrom(workload: Ordinals, ordinal: number): number | undefined {
  let next = Math.max(ordinal, workload.start);
  for (const { from, to } of workload.reserved ?? []) if (next >= from && next <= to) next = to + 1;
  return next < endOfOrdinals(workload) ? next : undefined;
}
