// SPDX-License-Identifier: Apache-2.0
import { isAtRest } from "./bind.ts";
import { type Claim, claimKey, type Identity } from "./claim.ts";
import { type Refusal, refuse } from "./errors.ts";
import { describeIdentity, mayFollow } from "./identity.ts";
import type { Ask } from "./plan.ts";

/** Why the claim is not for this identity. */
export function barredFrom(claim: Claim | undefined, identity: Identity): Refusal | undefined {
  if (claim === undefined) return undefined;
  return isNamesake(claim, identity) ? namesake(claim) : undefined;
}

/** Why the claim cannot have other addresses now. */
export function stuckWith(claim: Claim | undefined, ask: Ask): Refusal | undefined {
  return claim === undefined || isAtRest(claim) ? undefined : changed(claim, ask);
}

/** What a person wrote is for whoever has the name, but no set takes its slots from there. */
export function isNamesake(claim: Claim, identity: Identity): boolean {
  if (claim.handMade === true) return claim.identity.slot !== identity.slot;
  return !mayFollow(claim.identity, identity);
}

function namesake(claim: Claim): Refusal {
  const key = claimKey(claim);
  const owner = describeIdentity(claim.identity);
  return refuse("CLAIM_BUSY", `claim ${key} belongs to ${owner}; give this pod another name`, { claim: key });
}

function changed(claim: Claim, ask: Ask): Refusal {
  const key = claimKey(claim);
  const wants = ask.entry?.join(", ") ?? `an address of pool ${ask.pools?.join(", ") ?? "any"}`;
  return refuse(
    "CLAIM_CHANGED",
    `claim ${key} holds ${claim.addresses.join(", ")} and is in use by pod ${claim.binding?.podName ?? ""}, but the request is now for ${wants}; ` +
      "it changes when that pod is deleted and created again",
    { claim: key, address: claim.addresses.join(",") },
  );
}
