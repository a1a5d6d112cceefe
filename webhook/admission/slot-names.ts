// SPDX-License-Identifier: Apache-2.0
// The claims of a set's slots have names that a pod, a workload or a person may choose as well. Whoever takes one takes the slot from the set.
import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { readClaim } from "../../allocator/cache/reader.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { namesake } from "../../allocator/lifecycle/claim-conflicts.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { type Claim, type ClaimKey, claimKey, type Identity } from "../../allocator/model/claim.ts";
import { nameOfOrdinal } from "../../allocator/model/claim-workload.ts";
import { placeInSet } from "../../allocator/model/identity.ts";
import { slotKinds } from "../../allocator/model/workload-kinds.ts";
import type { AdmissionContext } from "./admission-context.ts";

/**
 * Why the pod, the ordinal or the person cannot have the name: a set that is there has a slot of that name, whose claim was
 * not made yet. Where there is a claim of the name, whose that is decides.
 */
async function isSlotOfSet(
  { context, inventory }: Pick<AdmissionContext, "context" | "inventory">,
  { namespace, name }: ClaimKey,
  requester: Identity,
): Promise<Refusal | undefined> {
  const place = placeInSet(name);
  if (place === undefined) return undefined;
  for (const { apiVersion, kind } of slotKinds()) {
    const workload = await inventory.workload({ apiVersion, kind, namespace, name: place.workload });
    if (typeof workload !== "object" || workload.hostNetwork) continue;
    const identity = { apiVersion, kind, name: place.workload, slot: place.slot };
    // of a list that cannot be read nothing is known
    if (workload.slots === undefined || neededBy(workload, identity) !== "needed") continue;
    if ((await readClaim(context, claimKey({ namespace, name }))) !== undefined) return undefined;
    return namesake({ namespace, name, addresses: [], identity }, requester);
  }
  return undefined;
}

/** Whether it is called like a slot, and is none: a pod's, an ordinal, an index of a Job, a machine. */
export async function isSlotOfAnother(
  admission: Pick<AdmissionContext, "context" | "inventory">,
  allocations: readonly Pick<AllocationRequest, "key" | "identity">[],
): Promise<{ readonly refusal: Refusal; readonly name: string } | undefined> {
  for (const { key, identity } of allocations) {
    if (identity.slot !== undefined) continue;
    const refusal = await isSlotOfSet(admission, key, identity);
    if (refusal !== undefined) return { refusal, name: key.name };
  }
  return undefined;
}

/**
 * The same of a claim that a person makes, who is free to choose its name: no set needs to be there yet. The ordinals of a
 * StatefulSet that is called so have the names that they have.
 */
export async function isSlotByHand(admission: AdmissionContext, claim: Claim): Promise<Refusal | undefined> {
  const place = placeInSet(claim.name);
  if (place === undefined) return undefined;
  if (nameOfOrdinal(claim.identity) === claim.name)
    return await isSlotOfSet(admission, claim, claim.identity);
  const { workload, slot } = place;
  const words = `metadata.name ${claim.name} is that of the claim of slot ${slot} of a set ${workload}, which Berth alone makes: this claim would take the slot from the pods of ${workload}; choose another name, or write the address into berth.dev/ips of the workload's template`;
  return refuse("REQUEST_INVALID", words, { field: "metadata.name", claim: claimKey(claim) });
}
