// SPDX-License-Identifier: Apache-2.0
import { type Claim, isReserved } from "./claim.ts";
import type { Ask } from "./plan.ts";

/** What a claim that is there asks for by itself: to stay as it is, or what a person wrote until it is reserved. */
function askOfClaim(ask: Ask, claim: Claim): Ask {
  const { entry: _, pools: __, families: ___, ...who } = ask;
  const { addresses, pools, families } = claim.request;
  const entry = isReserved(claim) ? claim.addresses : addresses;
  return {
    ...who,
    ...(entry === undefined ? {} : { entry }),
    ...(pools === undefined ? {} : { pools }),
    ...(families === undefined ? {} : { families }),
  };
}

/** Of an intent, what a claim may say in its place. */
interface Follower {
  readonly request: Claim["request"];
  readonly retention: Claim["retention"];
  readonly ask: Ask;
  readonly followsClaim?: "any" | "handMade";
}

/** The intent with what the claim says, where that goes. One that was made from a view may be about an older claim of the name. */
export function followed<T extends Follower>(intent: T, claim: Claim | undefined): T {
  const { followsClaim } = intent;
  if (followsClaim === undefined || claim === undefined) return intent;
  if (followsClaim === "handMade" && claim.handMade !== true) return intent;
  const { request, retention } = claim;
  return { ...intent, request, retention, ask: askOfClaim(intent.ask, claim) };
}
