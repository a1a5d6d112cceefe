// SPDX-License-Identifier: Apache-2.0
import type { ReservedOrdinals } from "../model/ordinals.ts";
import type { Fields } from "./fields.ts";

/** "7", or "3-5" for all from 3 to 5. */
const HOLE = /^(\d{1,9})(?:-(\d{1,9}))?$/;

/** What OpenKruise's StatefulSet leaves out (`spec.reserveOrdinals`, numbers and ranges): in order, and apart from each other. */
export function reservedOrdinalsOf(spec: Fields): readonly ReservedOrdinals[] {
  const said = spec.list("reserveOrdinals").flatMap((entry) => {
    const [, from, to = from] = HOLE.exec(String(entry)) ?? [];
    return from === undefined || Number(to) < Number(from) ? [] : [{ from: Number(from), to: Number(to) }];
  });
  const apart: ReservedOrdinals[] = [];
  for (const { from, to } of said.toSorted((a, b) => a.from - b.from)) {
    const last = apart.at(-1);
    if (last === undefined) apart.push({ from, to, before: 0 });
    else if (from > last.to + 1) apart.push({ from, to, before: last.before + last.to - last.from + 1 });
    else apart[apart.length - 1] = { ...last, to: Math.max(last.to, to) };
  }
  return apart;
}
