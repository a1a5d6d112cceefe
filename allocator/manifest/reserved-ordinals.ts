// SPDX-License-Identifier: Apache-2.0
import { ORDINAL_DIGITS, type ReservedOrdinals } from "../model/ordinals.ts";
import { groupOf } from "../model/workload-kinds.ts";
import type { Fields } from "./fields.ts";

const FIELD = "reserveOrdinals";
/** "7", or "3-5" for all from 3 to 5. */
const HOLE = new RegExp(`^(${ORDINAL_DIGITS})(?:-(${ORDINAL_DIGITS}))?$`);

interface Workload {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Each review and each pass of the garbage collector reads them; an object has room for hundreds of thousands. */
export const MAX_RESERVED_ORDINALS = 4096;

/** Kubernetes' own StatefulSet has no such field, so that whatever an object of another kind says there means nothing. */
export function leavesOutOrdinals({ apiVersion, kind }: Workload): boolean {
  return kind === "StatefulSet" && groupOf(apiVersion) === "apps.kruise.io";
}

/** Of its entries what is read, and whether there are more, for who keeps an object in memory: they may be of any length, and are a tenant's to write. */
export function keptOrdinals(workload: Workload, spec: Fields): Readonly<Record<string, unknown>> {
  if (!leavesOutOrdinals(workload)) return {};
  const entries = spec.list(FIELD).slice(0, MAX_RESERVED_ORDINALS + 1);
  return entries.length === 0 ? {} : { [FIELD]: entries.map((entry) => holeIn(entry)?.[0] ?? "") };
}

/** What is neither means nothing; not each object can be made a text of. */
function holeIn(entry: unknown): RegExpExecArray | null {
  return typeof entry === "number" || typeof entry === "string" ? HOLE.exec(String(entry)) : null;
}

/** It has more entries than are read. */
export function hasUnreadOrdinals(spec: Fields): boolean {
  return spec.list(FIELD).length > MAX_RESERVED_ORDINALS;
}

/** Of one that has more entries than are read. */
export function warningsOfUnreadOrdinals(workload: Workload & { readonly spec: Fields }): readonly string[] {
  if (!leavesOutOrdinals(workload) || !hasUnreadOrdinals(workload.spec)) return [];
  return [
    `spec.${FIELD} has more than ${MAX_RESERVED_ORDINALS} entries: berth reads no more, keeps the address of every ordinal that there is, and reserves none ahead for those beyond; write ranges, such as "3-5"`,
  ];
}

/**
 * What OpenKruise's StatefulSet leaves out (`spec.reserveOrdinals`, numbers and ranges): in order, and apart from each other. Entries
 * beyond MAX_RESERVED_ORDINALS are not read (`hasUnreadOrdinals`).
 */
export function reservedOrdinalsOf(spec: Fields): readonly ReservedOrdinals[] {
  const entries = spec.list(FIELD).slice(0, MAX_RESERVED_ORDINALS);
  const said = entries.flatMap((entry) => {
    const [, from, to = from] = holeIn(entry) ?? [];
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
