// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import type { Reading } from "../cache/read-ahead.ts";
import { readClaim } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { isCooldownOver } from "../lifecycle/acquire.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { isInGrantedBlock } from "../lifecycle/block-conflict.ts";
import { decide, type Mode } from "../lifecycle/claim-decision.ts";
import { type Claim, claimKey, isPredecessor } from "../model/claim.ts";
import { formatAddresses, type Interfaces } from "../model/interfaces.ts";
import { isHeldBy } from "../model/reservation.ts";
import { placesIn } from "../planning/interface-plan.ts";
import type { FamilyPlan } from "../planning/plan.ts";
import { addressTaken } from "../planning/refusal-messages.ts";

/** What an identity would get, if nobody came in between. Nothing is written. */
export interface DryRunResult {
  readonly kind: "dry-run";
  /** Name of the claim that would have them. */
  readonly claim: string;
  readonly addresses: readonly { readonly address: Address; readonly pool: string; readonly held: boolean }[];
  /** Of the addresses, where the request names any. */
  readonly interfaces?: Interfaces;
  /** What its own claim has now, if that would get other addresses: a claim changes only with its pod (ADR 0007). */
  readonly keeps: readonly Address[];
}

export type DryRun = Pick<Context, "view" | "clock"> & { readonly store: Reading };

/**
 * The same planning as `reserve`, with reads of the store in place of creates. `claimedEarlier`: addresses that others
 * of the same review would get before it.
 */
export async function dryRun(
  context: DryRun,
  allocation: AllocationRequest,
  claimedEarlier: ReadonlySet<Address> = new Set(),
): Promise<DryRunResult | Refusal> {
  const key = claimKey(allocation.key);
  const seen = (await readClaim(context, key))?.record;
  const would = await dryRunWith(context, allocation, seen, claimedEarlier);
  if (!isRefusal(would) || seen?.handMade !== true) return would;
  // what a person made he may have deleted or changed a moment ago, which the view did not hear of
  const stored = (await context.store.get("claim", key))?.record;
  return await dryRunWith(context, allocation, stored, claimedEarlier);
}

async function dryRunWith(
  context: DryRun,
  allocation: AllocationRequest,
  known: Claim | undefined,
  claimedEarlier: ReadonlySet<Address>,
): Promise<DryRunResult | Refusal> {
  const claim = known?.releasing === true && known.deleting !== true ? undefined : known;
  // that a slot is free, although another pod was told of it, is for whoever asks about slots to say
  const replacesToken = claim?.binding?.token ?? "";
  const decision = await decide(context, { ...allocation, replacesToken }, claim, dryRunning(context));
  if (isRefusal(decision)) return decision;
  const { plan, reliable, moves } = decision;
  const addresses = plan.keep.map((address) => ({
    address,
    pool: context.view.poolOf(address)?.name ?? "",
    held: reliable.includes(address),
  }));
  for (const familyPlan of plan.familyPlans) {
    const got = await dryRunFamily(context, familyPlan, allocation, claimedEarlier);
    if (isRefusal(got)) return got;
    addresses.push({ ...got, held: false });
  }
  const isOwn = claim?.identity.kind === allocation.identity.kind;
  const got = addresses.slice(plan.keep.length).map(({ address }) => address);
  const interfaces = placesIn(plan, got);
  const keeps = moves && isOwn ? reliable : [];
  const result = { kind: "dry-run", claim: allocation.key.name, addresses, keeps } as const;
  return interfaces === undefined ? result : { ...result, interfaces };
}

/** As a review decides, which has seen no pod, and without a write. */
function dryRunning(context: DryRun): Mode {
  return {
    seen: "nothing",
    heldBy: (claim) => reservedOf(context, claim),
    isFreeOfBlocks: async (address) => !(await isInGrantedBlock(context, address)),
  };
}

/** The addresses of the claim that are reserved for it. */
async function reservedOf(context: DryRun, { addresses, nonce }: Claim): Promise<Address[]> {
  const reserved: Address[] = [];
  for (const address of addresses) {
    const shown = context.view.reservation(address) ?? (await context.store.get("reservation", address));
    if (shown !== undefined && isHeldBy(shown.record, nonce)) reserved.push(address);
  }
  return reserved;
}

async function dryRunFamily(
  context: DryRun,
  familyPlan: FamilyPlan,
  { key, constraints }: AllocationRequest,
  claimedEarlier: ReadonlySet<Address>,
): Promise<{ address: Address; pool: string } | Refusal> {
  let skipped = 0;
  for (const candidate of familyPlan.candidates) {
    if (claimedEarlier.has(candidate.address)) {
      skipped++;
      continue;
    }
    const found = await context.store.get("reservation", candidate.address);
    if (found === undefined || isCooldownOver(context, found)) return candidate;
    const { claim: holder } = found.record;
    if (claimKey(holder) === claimKey(key) || isPredecessor(holder, key, constraints.takesOver?.name))
      return candidate;
    if (!familyPlan.exact) continue;
    const pool = context.view.pool(candidate.pool);
    return pool === undefined
      ? familyPlan.exhausted()
      : addressTaken(context.view, pool, candidate.address, found.record);
  }
  return familyPlan.exhausted(skipped);
}

/** In words, for warnings of a dry run. */
export function describeDryRun(who: string, { addresses, interfaces }: DryRunResult): string {
  const parts = addresses.map(
    ({ address, pool, held }) =>
      `${formatAddresses([address], interfaces)[0]} ${held ? "(its own)" : `from pool ${pool}`}`,
  );
  return `${who} would get ${parts.join(" and ")}`;
}

/** Of an ordinal whose StatefulSet asks for other addresses than its claim has; undefined: it has what is asked for. */
export function describeKept(who: string, { addresses, keeps }: DryRunResult): string | undefined {
  if (keeps.length === 0) return undefined;
  const until = `${who} keeps ${keeps.join(" and ")} until its pod is created again`;
  const fresh = addresses.filter(({ held }) => !held).map(({ address }) => address);
  if (fresh.length === 0) return `${until}, with ${addresses.map(({ address }) => address).join(" and ")}`;
  return `${until}; ${fresh.join(" and ")} ${fresh.length === 1 ? "is" : "are"} not reserved before that`;
}
