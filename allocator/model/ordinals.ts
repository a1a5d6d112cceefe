// SPDX-License-Identifier: Apache-2.0
// Which ordinals a StatefulSet has pods of, and how they are written.

/** Kubernetes counts in an int32; `ordinals.start` may be that high. */
const LAST_ORDINAL = 2_147_483_647;
/** As a part of regular expressions: an ordinal, or a number that may be higher. No more of a text is read, whose length is a tenant's. */
export const ORDINAL_DIGITS = String.raw`\d{1,10}`;
const ORDINAL = new RegExp(`^${ORDINAL_DIGITS}$`);

/** Undefined: it is none, or higher than any. */
export function parseOrdinal(text: string): number | undefined {
  const ordinal = ORDINAL.test(text) ? Number(text) : LAST_ORDINAL + 1;
  return ordinal > LAST_ORDINAL ? undefined : ordinal;
}

/** Whose pod is called so, and which one: `mysql-0`. Undefined: the name ends with no ordinal, or not as a StatefulSet writes it. */
export function ordinalInName(
  name: string,
): { readonly workload: string; readonly ordinal: number } | undefined {
  const at = name.lastIndexOf("-");
  const [workload, suffix] = [name.slice(0, Math.max(at, 0)), name.slice(at + 1)];
  const ordinal = parseOrdinal(suffix);
  return workload === "" || ordinal === undefined || suffix !== String(ordinal)
    ? undefined
    : { workload, ordinal };
}

/** Ordinals from `from` to `to`, of which OpenKruise's StatefulSet makes no pods. */
export interface ReservedOrdinals {
  readonly from: number;
  readonly to: number;
  /** How many it leaves out before these: whoever asks about one ordinal need not walk over all, which are a tenant's to write. */
  readonly before: number;
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
    for (; ordinal < from && left > 0; ordinal++, left--) {
      if (!Number.isSafeInteger(ordinal)) return; // Kubernetes makes no such pod
      yield ordinal;
    }
    if (left === 0) return;
    ordinal = Math.max(ordinal, to + 1);
  }
}

/** Whether the ordinal comes before that end, and not before the first. */
export function isInOrdinals({ start, replicas, reserved = [] }: Ordinals, ordinal: number): boolean {
  const left = countBelow(reserved, ordinal) - countBelow(reserved, start);
  return ordinal >= start && ordinal - start - left < replicas;
}

/** The first that it has a pod of from that one on, of which there may be none; undefined then. */
export function ordinalFrom(workload: Ordinals, ordinal: number): number | undefined {
  const first = Math.max(ordinal, workload.start);
  const last = lastFrom(workload.reserved ?? [], first);
  const next = last === undefined ? first : Math.max(first, last.to + 1);
  return isInOrdinals(workload, next) ? next : undefined;
}

/** How many of them are less than the ordinal. */
function countBelow(reserved: readonly ReservedOrdinals[], ordinal: number): number {
  const last = lastFrom(reserved, ordinal);
  return last === undefined ? 0 : last.before + Math.min(last.to + 1, ordinal) - last.from;
}

/** The last of them that do not begin beyond the ordinal. */
function lastFrom(reserved: readonly ReservedOrdinals[], ordinal: number): ReservedOrdinals | undefined {
  let [low, high] = [0, reserved.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((reserved[middle]?.from ?? 0) <= ordinal) low = middle + 1;
    else high = middle;
  }
  return reserved[low - 1];
}
