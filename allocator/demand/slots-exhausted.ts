// SPDX-License-Identifier: Apache-2.0

import { type Refusal, type RefusalCode, refuseJoined } from "../base/errors.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { isNameConflict } from "../lifecycle/claim-conflicts.ts";

/** Why a pod cannot have any slot of its set; `met` is why not that one. Whose the slots are is told to who may read it. */
export function slotsExhausted(
  slots: readonly AllocationRequest[],
  met: ReadonlyMap<AllocationRequest, Refusal>,
): Refusal {
  const { fit = [], unfit = [] } = Object.groupBy(slots, (slot) => (slot.unfit ? "unfit" : "fit"));
  const refusals = [...fit, ...unfit].flatMap((slot) => met.get(slot) ?? []); // who has the one that it could have is named first
  const only = slots[0]?.identity.slot === undefined ? refusals[0] : undefined;
  if (only !== undefined) return only;
  const rest: string[] = [];
  if (refusals.length > MOST_NAMED) rest.push(`and ${refusals.length - MOST_NAMED} more`);
  const isTooShort = unfit.length === 0 && !refusals.every(isForOthers); // a further entry would have another MAC address, too
  if (isTooShort) rest.push("add entries for replicas and maxSurge, or lower them");
  const state = refusals.some(isForOthers) ? NONE_FREE : ALL_IN_USE;
  const what = slots.length === 1 ? state.one : state.many(slots.length);
  const joined = (named: readonly Refusal[]) => {
    const why = new Set(named.map(({ message }) => message)); // what is withheld of two may be the same
    return `${what}: ${[...why, ...rest].join("; ")}`;
  };
  const parts = { refusals: refusals.slice(0, MOST_NAMED), joined };
  return refuseJoined("SET_EXHAUSTED", parts, { namespace: slots[0]?.key.namespace ?? "" });
}

const UNFIT: ReadonlySet<RefusalCode> = new Set([
  "NODE_MISMATCH",
  "REQUEST_INVALID", // the pod says otherwise
]);

/** It would not be had if nobody used it either. */
function isForOthers(obstacle: Refusal): boolean {
  return isNameConflict(obstacle) || UNFIT.has(obstacle.code);
}

/** So many slots are spoken of in a refusal. */
const MOST_NAMED = 4;

const ALL_IN_USE = {
  one: "the only entry of the list is in use",
  many: (entries: number) => `all ${entries} entries of the list are in use`,
};
const NONE_FREE = {
  one: "the only entry of the list cannot be used",
  many: (entries: number) => `none of the ${entries} entries of the list can be used`,
};
