// SPDX-License-Identifier: Apache-2.0
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";

/** "7", or "3-5" for all from 3 to 5. */
const HOLE = /^(\d{1,9})(?:-(\d{1,9}))?$/;

/** Ordinals from `from` to `to` of which OpenKruise's StatefulSet makes no pods. */
interface ReservedOrdinals {
  readonly from: number;
  readonly to: number;
}

/** What OpenKruise's StatefulSet leaves out (`spec.reserveOrdinals`, numbers and ranges), in the order of the list. */
export function reservedOrdinalsOf({ spec }: KubeObject): readonly ReservedOrdinals[] {
  return spec.list("reserveOrdinals").flatMap((entry) => {
    const [, from, to = from] = HOLE.exec(String(entry)) ?? [];
    return from === undefined ? [] : [{ from: Number(from), to: Number(to) }];
  });
}

/** Whether it makes no pod of the ordinal. */
export function isReservedOrdinal(object: KubeObject, ordinal: number): boolean {
  return reservedOrdinalsOf(object).some(({ from, to }) => ordinal >= from && ordinal <= to);
}
