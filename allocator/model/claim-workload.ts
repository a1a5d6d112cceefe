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
  const { apiVersion, kind, ordinal, slot } = identity;
  const followed = FOLLOWED.find(
    (one) => one.kind === kind && (apiVersion === "" || one.group === groupOf(apiVersion)),
  );
  if (followed === undefined) return undefined;
  if (followed.place === "slot") return slot === undefined ? undefined : refOf(namespace, identity);
  const isPlace = ordinal !== undefined && name === `${identity.name}-${ordinal}`;
  return isPlace ? refOf(namespace, identity) : undefined;
}

function refOf(namespace: string, { apiVersion, kind, name }: Identity): WorkloadRef {
  return { apiVersion, kind, namespace, name };
}
