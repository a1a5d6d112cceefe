// SPDX-License-Identifier: Apache-2.0
import { beingDeleted, isAtRest } from "./bind.ts";
import { type Binding, type Claim, type ClaimKey, claimKey, type Identity } from "./claim.ts";
import { type Refusal, refuse } from "./errors.ts";
import { describeIdentity, mayFollow } from "./identity.ts";
import type { Ask } from "./plan.ts";

/** Why the claim is not for this identity, or for nobody any more. */
export function barredFrom(claim: Claim | undefined, identity: Identity): Refusal | undefined {
  if (claim === undefined) return undefined;
  if (isNamesake(claim, identity)) return namesake(claim);
  return claim.deleting === true ? beingDeleted(claim) : undefined;
}

/** Why a person cannot have addresses for the claim that he has made: it is gone, or another one has its name. */
export function notByHand(claim: Claim | undefined, of: ClaimKey): Refusal | undefined {
  if (claim?.handMade === true) return undefined;
  if (claim !== undefined) return belongs(claim);
  const key = claimKey(of);
  const words = `claim ${key} was deleted while its addresses were reserved; create it again if it is wanted`;
  return refuse("CLAIM_RELEASING", words, { claim: key });
}

/** The words for a claim that was made for a pod, to a person who wants the name. */
export function belongs(claim: Claim): Refusal {
  const key = claimKey(claim);
  const words = `claim ${key} exists already and holds ${claim.addresses.join(", ")}; release it first, or choose another name`;
  return refuse("CLAIM_BUSY", words, { claim: key });
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

/**
 * Whoever was promised the slot of a set was told its addresses: nobody changes them under him. `instead` is the token
 * of a promise that was found to be over.
 */
export function promisedAlready(
  claim: Claim | undefined,
  asker: { readonly identity: Identity; readonly instead?: string; readonly promise?: Binding },
): Refusal | undefined {
  const { node = "", token = "" } = claim?.binding ?? {};
  const isMine = token === (asker.instead ?? asker.promise?.token);
  if (claim === undefined || asker.identity.slot === undefined || node !== "" || token === "" || isMine)
    return undefined;
  const key = claimKey(claim);
  const words = `claim ${key} (${claim.addresses.join(", ")}) was promised to another pod at this moment; try again`;
  return refuse("CLAIM_BUSY", words, { claim: key });
}
