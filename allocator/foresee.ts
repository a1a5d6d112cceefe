// SPDX-License-Identifier: Apache-2.0
import { claimKey, isReserved } from "./claim.ts";
import { followed } from "./claim-ask.ts";
import type { Context } from "./context.ts";
import { isRefusal, type Refusal } from "./errors.ts";
import { barredFrom } from "./objections.ts";
import { type Plan, planAddresses } from "./plan.ts";
import { isHeldBy } from "./reservation.ts";
import { agrees, type Intent } from "./reserve.ts";
import type { Stored } from "./store/store.ts";
import { cooledOff } from "./take.ts";

/**
 * What `reserve` would come to, by the view alone, for whoever asks again and again: `stands`, the claim has all that it
 * should have; a refusal, an address that is needed is seen in other hands; `try`, only the store can tell.
 */
export function foresee(context: Pick<Context, "view" | "clock">, wish: Intent): Foresight {
  const { view } = context;
  const known = view.claim(claimKey(wish.key));
  const claim = known?.record;
  const intent = followed(wish, claim);
  if (claim?.releasing === true || claim?.deleting === true) return { kind: "try" };
  const barred = barredFrom(claim, intent.identity);
  if (barred !== undefined) return barred;
  const plan = planAddresses(view, { ...intent.ask, holds: claim?.addresses ?? [] });
  if (isRefusal(plan)) return plan;
  const refusal = takenAlready(context, intent, plan);
  if (refusal !== undefined) return refusal;
  return known !== undefined && stands(context, intent, known, plan)
    ? { kind: "stands", claim: known }
    : { kind: "try" };
}

export type Foresight =
  | { readonly kind: "stands"; readonly claim: Stored<"claim"> }
  | { readonly kind: "try" }
  | Refusal;

function takenAlready(
  context: Pick<Context, "view" | "clock">,
  intent: Intent,
  plan: Plan,
): Refusal | undefined {
  const key = claimKey(intent.key);
  for (const lot of plan.lots) {
    if (!lot.exact) continue;
    for (const { address } of lot.candidates) {
      const found = context.view.reservation(address);
      if (found === undefined || claimKey(found.record.claim) === key || cooledOff(context, found)) continue;
      return lot.exhausted();
    }
  }
  return undefined;
}

function stands(
  { view }: Pick<Context, "view">,
  intent: Intent,
  { record: claim }: Stored<"claim">,
  { lots, keep }: Plan,
): boolean {
  if (!isReserved(claim) || lots.length > 0 || keep.length < claim.addresses.length) return false;
  const holds = claim.addresses.every((address) => {
    const reservation = view.reservation(address)?.record;
    return reservation !== undefined && isHeldBy(reservation, claim.nonce);
  });
  return holds && agrees(claim, intent);
}
