// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import type { Reading } from "../cache/read-ahead.ts";
import { type Address, type Family, familyOf } from "../ip/address.ts";
import { type Claim, claimKey } from "../model/claim.ts";
import { isHeldBy } from "../model/reservation.ts";
import { planAddresses } from "../planning/address-plan.ts";
import type { AddressConstraints, Plan } from "../planning/plan.ts";

/** The claim that is there, and how an address that is held beside it is looked at. */
interface Present {
  readonly claim: Claim;
  /** Those of its addresses that it may rely on. */
  readonly held: readonly Address[];
  /** Asked after the reservation was read: whether no node has the address in a block (ADR 0020). */
  readonly isFreeOfBlocks: (address: Address) => Promise<boolean>;
}

/**
 * The plan for a pod whose claim has other addresses, with those that an earlier review holds beside the claim already:
 * creates that fail one after another (a quota, a retrying controller, a forger) take one address, not one each.
 * `direct` is the plan without them; it stands if it takes nothing, or if none of them fits.
 */
export async function planBeside(
  context: Pick<Context, "view"> & { readonly store: Reading },
  constraints: AddressConstraints,
  { claim, held, isFreeOfBlocks }: Present,
  direct: Plan | Refusal,
): Promise<Plan | Refusal> {
  const isRefused = isRefusal(direct);
  if (
    isRefused
      ? direct.code !== "LIMIT_REACHED" && direct.code !== "POOL_EXHAUSTED"
      : direct.familyPlans.length === 0
  )
    return direct;
  const wanted = isRefused ? undefined : new Set(direct.familyPlans.map(({ family }) => family));
  const beside = heldBeside(context, claim).filter((address) => wanted?.has(familyOf(address)) !== false);
  if (beside.length === 0) return direct;
  const kept = isRefused ? held : direct.keep;
  const again = planAddresses(context.view, { ...constraints, ownAddresses: [...kept, ...beside] });
  if (isRefusal(again)) return direct;
  const chosen = chosenOf(constraints, again.keep, kept);
  // one that is on its way out stays so: asking again does not make it last
  for (const address of chosen) {
    if (kept.includes(address)) continue;
    const found = await context.store.get("reservation", address);
    const isHeld = found !== undefined && isHeldBy(found.record, claim.nonce);
    if (!(isHeld && (await isFreeOfBlocks(address)))) return direct;
  }
  return { ...again, keep: chosen };
}

/** What is named is all of it needed, of whichever interface. */
function chosenOf(
  { addresses, fallback }: AddressConstraints,
  keep: readonly Address[],
  own: readonly Address[],
): readonly Address[] {
  return addresses !== undefined && fallback === undefined ? keep : onePerFamily(keep, own);
}

/** Reserved for the claim, and not listed by it. All reservations are looked through: it is rare that anybody asks so. */
function heldBeside({ view }: Pick<Context, "view">, claim: Claim): readonly Address[] {
  const key = claimKey(claim);
  const found: Address[] = [];
  for (const { record } of view.reservations()) {
    if (record.nonce !== claim.nonce || claimKey(record.claim) !== key) continue;
    if (isHeldBy(record, claim.nonce) && !claim.addresses.includes(record.address))
      found.push(record.address);
  }
  return found;
}

/** The claim's own first. Requests by address may name several of a family; then each is asked for by name. */
function onePerFamily(keep: readonly Address[], own: readonly Address[]): readonly Address[] {
  const families = new Set<Family>();
  return [...keep]
    .sort((a, b) => Number(own.includes(b)) - Number(own.includes(a)))
    .filter((address) => {
      const family = familyOf(address);
      if (families.has(family) && !own.includes(address)) return false;
      families.add(family);
      return true;
    });
}
