// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../base/errors.ts";
import { refuseAddress } from "../ip/mac.ts";
import {
  type Claim,
  type ClaimKey,
  type ClaimRequest,
  claimKey,
  type Identity,
  isReserved,
} from "../model/claim.ts";
import { canInherit, describeIdentity, isAnonymous, isFoundByName } from "../model/identity.ts";
import { formatAddresses, formatHolding, namesOf } from "../model/interfaces.ts";
import type { AllocationRequest } from "./allocation-request.ts";
import { deletionPending, isDetached } from "./bind.ts";
import { HOLD_TIMEOUT_MS } from "./hold.ts";

/** Why the claim is not for this identity, or for nobody any more. */
export function claimConflict(claim: Claim | undefined, identity: Identity): Refusal | undefined {
  if (claim === undefined) return undefined;
  if (nameConflict(claim, identity)) return namesake(claim, identity);
  return claim.deleting === true ? deletionPending(claim) : undefined;
}

/** Why a person cannot have addresses for the claim that he has made: it is gone, or another one has its name. */
export function userClaimConflict(claim: Claim | undefined, of: ClaimKey): Refusal | undefined {
  if (claim?.handMade === true) return undefined;
  if (claim !== undefined) return isOwnClaim(claim);
  const key = claimKey(of);
  const words = `claim ${key} was deleted while its addresses were reserved; create it again if it is wanted`;
  return refuse("CLAIM_RELEASING", words, { claim: key });
}

/** The words for a claim that was made for a pod, to a person who wants the name. */
export function isOwnClaim(claim: Claim): Refusal {
  const key = claimKey(claim);
  const words = `claim ${key} exists already and holds ${formatHolding(claim).join(", ")}; release it first, or choose another name`;
  return refuse("CLAIM_BUSY", words, { claim: key });
}

/** Why the claim cannot have other addresses now. */
export function inUseConflict(claim: Claim | undefined, constraints: ClaimRequest): Refusal | undefined {
  return claim === undefined || isDetached(claim) ? undefined : changed(claim, constraints);
}

/** The words for other addresses that only the next pod can bring: one that is there was told those which the claim has. */
export function movesWithItsPod(claim: Claim, constraints: ClaimRequest): Refusal {
  const key = claimKey(claim);
  return refuse(
    "CLAIM_CHANGED",
    `claim ${key} holds ${formatHolding(claim).join(", ")}, and the request is now for ${wanted(constraints)}; it changes when its pod is created, or deleted and created again`,
    { claim: key, address: claim.addresses.join(",") },
  );
}

/** The words for other addresses than those of a claim that is kept for a workload, to a pod that is not the workload's. */
export function keptForWorkload(claim: Claim, constraints: ClaimRequest): Refusal {
  const key = claimKey(claim);
  const owner = describeIdentity(claim.identity);
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} holds ${formatHolding(claim).join(", ")} for ${owner}, whose it stays, and this pod, which is not its own, asks for ${wanted(constraints)}; give this pod another name, or give the claim back if ${claim.identity.kind} ${claim.identity.name} is not to come back: berthctl release ${key}`,
    { claim: key, address: claim.addresses.join(",") },
  );
}

/** The words for other addresses than those of a claim that a person made: only he changes it. */
export function madeByHandForOthers(claim: Claim, constraints: ClaimRequest): Refusal {
  const key = claimKey(claim);
  const { addresses: named, interfaces, ...any } = claim.request;
  const addresses = isReserved(claim) ? formatHolding(claim) : [];
  const its =
    addresses.length > 0
      ? `holds ${addresses.join(", ")}`
      : `is for ${wanted(named === undefined ? any : { addresses: named, ...(interfaces && { interfaces }) })}`;
  return refuseAddress(
    "CLAIM_BUSY",
    `claim ${key} was made by hand and ${its}, and this asks for ${wanted(constraints)}; ask for what the claim has, or delete the claim or change its spec.request`,
    { claim: key, address: addresses.join(",") },
  );
}

/** The words for a change that nobody wants any more. */
export function podGone(of: ClaimKey): Refusal {
  const key = claimKey(of);
  const words = `claim ${key} stays as it is: the pod that it was to be changed for is gone, or another one has its name`;
  return refuse("CLAIM_BUSY", words, { claim: key });
}

/**
 * Names of claims alone do not tell everything apart:
 *
 * | called like              | is the claim of                     | or of                                       |
 * |--------------------------|-------------------------------------|---------------------------------------------|
 * | `web-0`                  | a pod, an ordinal, a CloneSet's pod | an index of a Job, a machine                |
 * | `web-slot-0`             | a slot of any kind of set           | all of those above                          |
 * | `c-` and part of a token | a pod without a name of its own     | a pod that somebody called so, or a machine |
 *
 * Only those of the first entry pass from one to another, for one pod at a time has the name. What a person wrote is for
 * whoever has the name, but no set takes its slots from there, and what is for a Job or a machine is for no other.
 */
export function nameConflict({ name, identity: its, handMade }: Claim, identity: Identity): boolean {
  if (handMade === true)
    return its.slot !== identity.slot || !(isFoundByName(its) || canInherit(its, identity));
  return isAnonymous(name, its) !== isAnonymous(name, identity) || !canInherit(its, identity);
}

/** What is told of a claim to whoever comes with its name. Without a status it is one that a workload which is there will have. */
type Namesake = Pick<Claim, "namespace" | "name" | "addresses" | "handMade" | "retained" | "identity"> &
  Partial<Pick<Claim, "binding" | "status">>;

/** The words for a claim that another identity has by the same name, or will have, to the one who asks. */
export function namesake(claim: Namesake, requester: Identity): Refusal {
  const key = claimKey(claim);
  const owner = describeIdentity(claim.identity);
  const words =
    requester.kind === "Pod"
      ? `claim ${key} belongs to ${owner}; give this pod another name`
      : `the name of ${placeOf(requester)} is taken by claim ${key} of ${owner}${holding(claim)}: ${nextStep(claim)}`;
  return refuseAddress("CLAIM_BUSY", words, { claim: key, owner });
}

/** Whether it was refused because the claim of its name is another identity's. */
export function isNameConflict({ code, details }: Refusal): boolean {
  return code === "CLAIM_BUSY" && details["owner"] !== undefined;
}

function placeOf(identity: Identity): string {
  const { kind, name, slot, ordinal } = identity;
  if (slot !== undefined) return `slot ${slot}`;
  return ordinal === undefined ? `${kind} ${name}` : `ordinal ${ordinal}`;
}

function holding({ addresses }: Namesake): string {
  return addresses.length === 0 ? "" : `, which holds ${addresses.join(", ")}`;
}

/** Places of a workload have the names that they have, so it is the other one that can make way. */
function nextStep(claim: Namesake): string {
  const { handMade, retained, identity } = claim;
  const { kind, name } = identity;
  if (handMade === true) return "delete that claim, or create it under another name";
  if (retained !== undefined)
    return `if ${kind} ${name} is not to come back, give the claim back: berthctl release ${claimKey(claim)}`;
  const makeWay =
    kind === "Pod" ? `give pod ${name} another name, or delete it` : `rename or delete ${kind} ${name}`;
  if (isUnseen(claim))
    return `no pod was seen that has this claim; if ${kind} ${name} is not there, the name is free ${HOLD_TIMEOUT_MS / 60_000} minutes after the last pod was admitted for it; if it is, ${makeWay}`;
  return `${makeWay}; if it is gone, the claim is released when its pods are gone: try again in a moment`;
}

/** All that is known is what reviews said: anybody may send those. */
function isUnseen({ binding, status }: Namesake): boolean {
  return status !== undefined && status.attachment === undefined && (binding?.podUID ?? "") === "";
}

function changed(claim: Claim, constraints: ClaimRequest): Refusal {
  const key = claimKey(claim);
  return refuseAddress(
    "CLAIM_CHANGED",
    `claim ${key} holds ${formatHolding(claim).join(", ")} and is in use by pod ${claim.binding?.podName ?? ""}, but the request is now for ${wanted(constraints)}; ` +
      "it changes when that pod is deleted and created again",
    { claim: key, address: claim.addresses.join(",") },
  );
}

function wanted({ addresses, pools, interfacePools = {}, families, interfaces }: ClaimRequest): string {
  const which = families === undefined ? "an address" : `${families.join(" and ")} addresses`;
  const others = namesOf(interfacePools).filter((name) => !Object.hasOwn(interfaces ?? {}, name));
  const byInterface = others.map(
    (name) => `${which} of pool ${interfacePools[name]?.join(", ") || "any"} on ${name}`,
  );
  const named = addresses === undefined ? [] : formatAddresses(addresses, interfaces);
  const all = [...named, ...byInterface].join(", ");
  return all === "" ? `${which} of pool ${pools?.join(", ") ?? "any"}` : all;
}

/**
 * Whoever holds the slot of a set was told its addresses: nobody changes them under him. `replacesToken` is the token
 * of a hold that had expired.
 */
export function heldByOtherPod(claim: Claim | undefined, requester: AllocationRequest): Refusal | undefined {
  const { node = "", token = "" } = claim?.binding ?? {};
  const isMine = token === (requester.replacesToken ?? requester.hold?.token);
  if (claim === undefined || requester.identity.slot === undefined || node !== "" || token === "" || isMine)
    return undefined;
  return isHeldForAnother(claim);
}

export function isHeldForAnother(claim: Claim): Refusal {
  const key = claimKey(claim);
  const words = `claim ${key} (${claim.addresses.join(", ")}) was given to another pod at this moment; try again`;
  return refuseAddress("CLAIM_BUSY", words, { claim: key });
}
