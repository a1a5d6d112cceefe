// SPDX-License-Identifier: Apache-2.0

import type { Claim, Identity } from "./claim.ts";
import type { WorkloadRef } from "./cluster-state.ts";
import { FOLLOWED, groupOf } from "./workload-kinds.ts";

/**
 * The workload that decides whether the claim is needed, because it is that of one of its ordinals, indexes or slots.
 * Undefined: only its pod does. So it is for a pod that nothing tells from its like, for one that is not called as the
 * pods of its StatefulSet are, and for what is owned by anything that is not read.
 */
export function workloadOf({ namespace, name, identity }: Claim): WorkloadRef | undefined {
  const place = placeOf(identity);
  if (place === undefined) return undefined;
  if (place === "slot") return identity.slot === undefined ? undefined : refOf(namespace, identity);
  return name === nameOfOrdinal(identity) ? refOf(namespace, identity) : undefined;
}

/** What the claim of an ordinal or index is called: its pod looks for no other. Undefined: it is for none. */
export function nameOfOrdinal(identity: Identity): string | undefined {
  const { name, ordinal } = identity;
  return ordinal !== undefined && placeOf(identity) === "ordinal" ? `${name}-${ordinal}` : undefined;
}

/** The only name under which a claim serves what it says it is for; undefined: it is not told from what it says. */
export function nameOfServing(identity: Identity): string | undefined {
  const { kind, name } = identity;
  return kind === "Pod" || kind === "VirtualMachineInstance" ? name : nameOfOrdinal(identity);
}

function placeOf({ apiVersion, kind }: Identity): "ordinal" | "slot" | undefined {
  return FOLLOWED.find((one) => one.kind === kind && (apiVersion === "" || one.group === groupOf(apiVersion)))
    ?.place;
}

function refOf(namespace: string, { apiVersion, kind, name }: Identity): WorkloadRef {
  return { apiVersion, kind, namespace, name };
}
