// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { readingAhead } from "../../allocator/cache/read-ahead.ts";
import { readClaim } from "../../allocator/cache/reader.ts";
import {
  type DryRun,
  type DryRunResult,
  describeDryRun,
  describeKept,
  dryRun,
} from "../../allocator/demand/allocation-dry-run.ts";
import { fallenBack } from "../../allocator/demand/unkept-requests.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey, hadPod } from "../../allocator/model/claim.ts";
import { workloadOf } from "../../allocator/model/claim-workload.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { type EntriesBefore, neverEnds } from "./entry-exchange.ts";
import { laterWords } from "./later-addresses.ts";
import { podsThere } from "./pods-there.ts";
import { firstOf } from "./scale-down.ts";

/** Why not; `allocation` is of the pod that it is about. */
interface Objection {
  readonly refusal: Refusal;
  readonly allocation?: AllocationRequest;
}

/** What previews go by, and whom claims of other names are of. */
interface DryRunContext extends DryRun {
  readonly inventory: Pick<ClusterState, "workload">;
}

/** What is worth telling of the pods' addresses, or why they cannot have them. There may be two records to read for each of them. */
export async function dryRunAllocations(
  { context: { view, clock, store }, inventory }: AdmissionContext,
  object: KubeObject,
  allocations: readonly AllocationRequest[],
  { includeResults, before }: { readonly includeResults: boolean; readonly before?: EntriesBefore },
): Promise<string[] | Objection> {
  const there = podsThere(inventory);
  return await readingAhead(store, async (known) => {
    const context = { view, clock, store: known, inventory, podsThere: there };
    const never = await neverEnds(context, object, allocations, before);
    return never === undefined ? await dryRunAll(context, allocations, includeResults) : { refusal: never };
  });
}

/**
 * Each after the ones before it, so that two do not count on one address. What the previews say is told if `tell`;
 * a claim that will change later is always worth a warning.
 */
async function dryRunAll(
  context: DryRunContext,
  allocations: readonly AllocationRequest[],
  includeResults: boolean,
): Promise<string[] | Objection> {
  const warnings: string[] = [];
  const keeping: string[] = [];
  const fallen: string[] = [];
  const claimedEarlier = new Set<Address>();
  const own = new Set(allocations.map(({ key }) => claimKey(key)));
  for (const allocation of allocations) {
    const would = await dryRun(context, allocation, claimedEarlier);
    if (isRefusal(would)) {
      const words = await wordsFor(context, allocation, would, own);
      if (typeof words !== "string") return words;
      warnings.push(words);
      continue;
    }
    for (const { address } of would.addresses) claimedEarlier.add(address);
    fallen.push(...fellBack(allocation, would));
    const { key, identity } = allocation;
    // a slot's next pod takes any free entry
    const kept = identity.ordinal === undefined ? undefined : describeKept(key.name, would);
    if (kept !== undefined) keeping.push(kept);
    else if (includeResults) warnings.push(describeDryRun(key.name, would));
  }
  const shown = includeResults ? (words: string[]) => words : firstOf;
  return [...shown(keeping), ...shown(fallen), ...warnings];
}

/** The pods of a list's slots have no names yet. */
function fellBack(
  { constraints, key, identity }: AllocationRequest,
  { addresses, keeps }: DryRunResult,
): readonly string[] {
  if (constraints.fallback === undefined || keeps.length > 0) return [];
  const got = addresses.map(({ address }) => address);
  return fallenBack(
    constraints.addresses ?? [],
    got,
    identity.slot === undefined ? key.name : "one of its pods",
  );
}

/** A warning for what passes by itself, or when the pods are replaced; else the objection. */
async function wordsFor(
  context: DryRunContext,
  allocation: AllocationRequest,
  would: Refusal,
  own: ReadonlySet<string>,
): Promise<string | Objection> {
  const later = await laterWords(context, allocation, would, own);
  if (isRefusal(later)) return { refusal: later, allocation };
  return later ?? (await heldUnderItsName(context, allocation)) ?? { refusal: would, allocation };
}

/**
 * The words, if nothing but a review stands under the slot's name. Whoever sends such a review must not keep a workload
 * from being applied: the hold ends by itself, and the workload's pods have the other slots meanwhile. An ordinal that its
 * StatefulSet wants stays.
 */
async function heldUnderItsName(
  context: DryRunContext,
  { key, identity }: AllocationRequest,
): Promise<string | undefined> {
  if (identity.slot === undefined) return undefined;
  const claim = (await readClaim(context, claimKey(key)))?.record;
  if (claim === undefined || claim.identity.slot !== undefined) return undefined;
  if (claim.binding !== undefined || claim.handMade === true || hadPod(claim)) return undefined;
  if (await isWanted(context, claim)) return undefined;
  return `claim ${claimKey(key)} is held for a ${claim.identity.kind} of that name that was not seen; the slot is free in ${HOLD_TIMEOUT_MS / 60_000} minutes, or when that pod is gone`;
}

async function isWanted({ inventory }: DryRunContext, claim: Claim): Promise<boolean> {
  const ref = workloadOf(claim);
  const workload = ref && (await inventory.workload(ref));
  return typeof workload === "object" && neededBy(workload, claim.identity) === "needed";
}
