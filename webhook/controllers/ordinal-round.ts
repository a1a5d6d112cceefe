// SPDX-License-Identifier: Apache-2.0

import { isRefusal, isStoreFault, type Refusal } from "../../allocator/base/errors.ts";
import { predictFromCache } from "../../allocator/demand/cache-prediction.ts";
import type { OrdinalRequest } from "../../allocator/demand/workload-allocation.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { isKeptForOwner } from "../../allocator/lifecycle/claim-owner.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import type { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { withUsablePools } from "../admission/pool-access.ts";
import { isSlotOfAnother } from "../admission/slot-names.ts";
import type { ControllerDeps } from "./controller.ts";

/** Ordinals of one workload that are looked at before others have their turn. */
const AT_ONCE = 50;
/**
 * Where the store fails so many ordinals one after the other, the next would most likely meet it too, and each may take as long as
 * a call does: the next walk begins with that one. What is one record's, or one policy's, says nothing of the next ordinal.
 */
const MOST_STORE_FAULTS_IN_A_ROW = 5;

/** One walk over the ordinals of a workload, as it was when the walk began. */
export interface Round {
  readonly ordinals: Iterator<OrdinalRequest>;
  /** Of its template, for the service account. */
  readonly podSpec: Fields;
  readonly refused: { readonly name: string; readonly obstacle: Refusal }[];
  /** Ordinals that met a fault: others may be had all the same. */
  readonly failed: { readonly name: string; readonly fault: unknown }[];
  storeFaultsInARow: number;
  /** The walk was cut short before that one. */
  next?: number;
}

/** True: the walk is over. */
export async function continueRound(
  deps: ControllerDeps,
  round: Round,
  signal: AbortSignal,
): Promise<boolean> {
  for (let n = 0; n < AT_ONCE; n++) {
    if (signal.aborted || !deps.leadership.leads()) return false;
    const next = round.ordinals.next();
    if (next.done === true) return true;
    await tryOne(deps, round, next.value);
    if (round.storeFaultsInARow < MOST_STORE_FAULTS_IN_A_ROW) continue;
    round.next = next.value.ordinal + 1;
    return true;
  }
  return false;
}

async function tryOne(
  deps: ControllerDeps,
  round: Round,
  { name, allocation }: OrdinalRequest,
): Promise<void> {
  try {
    const obstacle = isRefusal(allocation) ? allocation : await provide(deps, allocation, round.podSpec);
    if (obstacle !== undefined) round.refused.push({ name, obstacle });
    round.storeFaultsInARow = 0;
  } catch (fault) {
    round.failed.push({ name, fault });
    round.storeFaultsInARow = isStoreFault(fault) ? round.storeFaultsInARow + 1 : 0;
  }
}

/** A claim that stands costs no call, but for the review of who may use its pool, which is remembered for a while. */
async function provide(
  deps: ControllerDeps,
  plain: AllocationRequest,
  podSpec: Fields,
): Promise<Refusal | undefined> {
  const { context, inventory } = deps;
  const [allocation = plain] = await withUsablePools(deps, plain.key.namespace, podSpec, [plain]);
  const prediction = predictFromCache(context, allocation);
  if (prediction.kind !== "unknown") return isRefusal(prediction) ? prediction : undefined;
  const slot = await isSlotOfAnother({ context, inventory: inventory.live }, [allocation]);
  if (slot !== undefined) return slot.refusal;
  const got = await reserve(
    context,
    { ...allocation, isKeptForOwner: isKeptFor(deps, allocation) },
    "workload",
  );
  return isRefusal(got) ? got : undefined;
}

/** One ordinal's name may be that of another workload's, of another API group: whose pods are there has the claim. */
function isKeptFor(
  deps: ControllerDeps,
  { identity }: AllocationRequest,
): (claim: Claim) => Promise<boolean> {
  return (claim) => isKeptForOwner(claim, identity, deps.inventory.live);
}
