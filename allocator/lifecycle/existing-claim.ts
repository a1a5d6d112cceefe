// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Refusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { type Claim, type Identity, isReserved } from "../model/claim.ts";
import { isSameUid } from "../model/identity.ts";
import { addressesOn, FIRST_INTERFACE, isSameInterfaces } from "../model/interfaces.ts";
import { isSameGroup } from "../model/workload-kinds.ts";
import { type AddressConstraints, unconstrained } from "../planning/address-plan.ts";
import type { AllocationRequest } from "./allocation-request.ts";
import { isSame } from "./bind.ts";
import { madeByHandForOthers } from "./claim-conflicts.ts";

/** What a claim that is there asks for by itself: to stay as it is, or what a person wrote until it is reserved. */
function askOfClaim(ask: AddressConstraints, claim: Claim): AddressConstraints {
  const { entry: _, interfaces: __, pools: ___, families: ____, fallback: _____, ...who } = ask;
  const { addresses, interfaces, pools, families, fallback } = claim.request;
  const entry = isReserved(claim) ? claim.addresses : addresses;
  return {
    ...who,
    ...(entry === undefined ? {} : { entry }),
    ...(interfaces === undefined ? {} : { interfaces }),
    ...(pools === undefined ? {} : { pools }),
    ...(families === undefined ? {} : { families }),
    ...(fallback === undefined || isReserved(claim) ? {} : { fallback }),
  };
}

/** What a claim was given for a request it keeps as long as the request is the same, also if that was another address. */
export function withGiven(allocation: AllocationRequest, claim: Claim | undefined): AddressConstraints {
  const { ask, request } = allocation;
  const isSameRequest = claim !== undefined && isDeepStrictEqual(claim.request, request);
  return ask.fallback === undefined || !isSameRequest ? ask : { ...ask, isAsGiven: true };
}

/**
 * What the plan goes by that the claim has already. For a request that names no interface those of the first one come first: of each
 * family it keeps one.
 */
export function holdsOf(claim: Claim, held: readonly Address[] = claim.addresses): readonly Address[] {
  const first = addressesOn(claim, FIRST_INTERFACE);
  return first === undefined
    ? held
    : held.toSorted((a, b) => Number(first.includes(b)) - Number(first.includes(a)));
}

/** Whether the claim's addresses would go to other interfaces than they do. */
export function isRewired(
  claim: Claim | undefined,
  { request }: Pick<AllocationRequest, "request">,
): boolean {
  return (
    claim !== undefined &&
    isReserved(claim) &&
    !isSameInterfaces(claim.request.interfaces, request.interfaces)
  );
}

/** Of a request, what a claim may say in its place. */
interface Constrained {
  readonly request: Claim["request"];
  readonly retention: Claim["retention"];
  readonly ask: AddressConstraints;
  readonly followsClaim?: "any" | "handMade";
}

/** The request with what the claim says, where that goes. One that was made from a view may be about an older claim of the name. */
export function withClaimSpec<T extends Constrained>(allocation: T, claim: Claim | undefined): T {
  const { followsClaim } = allocation;
  if (followsClaim === undefined || claim === undefined) return allocation;
  if (followsClaim === "handMade" && claim.handMade !== true) return allocation;
  const { request, retention } = claim;
  return { ...allocation, request, retention, ask: askOfClaim(allocation.ask, claim) };
}

/**
 * A claim that a person made is changed by its author alone: whoever else comes with its name has the addresses that it has,
 * or will have. A refusal, if he asks for others. The same allocation, if no such claim is in its way.
 */
export function withClaimByHand(
  view: RecordReader,
  allocation: AllocationRequest,
  claim: Claim | undefined,
): AllocationRequest | Refusal {
  if (claim?.handMade !== true || allocation.byHand === true || allocation.fromSpec === true)
    return allocation;
  const { ask } = allocation;
  const { request } = claim;
  const its = isReserved(claim) ? claim.addresses : request.addresses;
  if (its !== undefined) {
    const fits =
      ask.entry === undefined ? unconstrained(view, ask, its) === undefined : isSame(ask.entry, its);
    if (!fits) return madeByHandForOthers(claim, ask);
    const { interfaces } = allocation.request;
    if (ask.entry !== undefined && !isSameInterfaces(interfaces, request.interfaces))
      return madeByHandForOthers(claim, ask);
    const { fallback: _, ...exactly } = ask;
    return { ...allocation, request: asClaim(allocation, claim), ask: { ...exactly, entry: its } };
  }
  if (isOther(ask.pools, request.pools) || isOther(ask.families, request.families))
    return madeByHandForOthers(claim, ask);
  const { pools = ask.pools, families = ask.families } = request;
  const both = {
    ...(pools === undefined ? {} : { pools }),
    ...(families === undefined ? {} : { families }),
  };
  return { ...allocation, ask: { ...ask, ...both } };
}

/** Of what a person made, the interfaces are its own; the rest of the request is never written into it. */
function asClaim({ request }: AllocationRequest, claim: Claim): Claim["request"] {
  const { interfaces: _, ...said } = request;
  const { interfaces } = claim.request;
  return interfaces === undefined ? said : { ...said, interfaces };
}

function isOther(asked: readonly string[] | undefined, said: readonly string[] | undefined): boolean {
  return asked !== undefined && said !== undefined && !isDeepStrictEqual(asked, said);
}

/**
 * A claim that is kept for a workload's place stays that workload's: a pod of its name that is not the workload's own may
 * use it, and changes neither its owner nor its retention or request. The same allocation, if nobody's claim is in its way.
 */
export async function withClaimOwner(
  allocation: AllocationRequest,
  claim: Claim | undefined,
): Promise<AllocationRequest> {
  if (claim === undefined || claim.handMade === true || isOfSame(claim.identity, allocation.identity))
    return allocation;
  if ((await allocation.isKeptForOwner?.(claim)) !== true) return allocation;
  const { identity, retention, request } = claim;
  return { ...allocation, identity, retention, request };
}

function isOfSame(one: Identity, other: Identity): boolean {
  return (
    one.kind === other.kind &&
    one.name === other.name &&
    one.ordinal === other.ordinal &&
    isSameGroup(one.apiVersion, other.apiVersion) &&
    isSameUid(one.uid, other.uid)
  );
}
