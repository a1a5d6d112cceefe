// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Refusal } from "../base/errors.ts";
import { sameSet } from "../base/same-set.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { unitedPools } from "../manifest/interface-union.ts";
import { type Claim, type ClaimRequest, type Identity, isReserved } from "../model/claim.ts";
import { isSameUid } from "../model/identity.ts";
import {
  addressesOn,
  FIRST_INTERFACE,
  formatAddresses,
  type InterfacePools,
  type Interfaces,
  isSameInterfaces,
  namesOf,
  placesOf,
  saidOf,
} from "../model/interfaces.ts";
import { isSameGroup } from "../model/workload-kinds.ts";
import { placesPlanned } from "../planning/interface-plan.ts";
import { unconstrained } from "../planning/named-addresses.ts";
import type { AddressConstraints, Plan } from "../planning/plan.ts";
import type { AllocationRequest } from "./allocation-request.ts";
import { madeByHandForOthers } from "./claim-conflicts.ts";

/** What a claim that is there asks for by itself: to stay as it is, or what a person wrote until it is reserved. */
export function requestToStay(claim: Claim): ClaimRequest {
  const { addresses, interfaces: _, fallback: __, ...any } = claim.request;
  if (!isReserved(claim)) return addresses === undefined ? any : claim.request;
  const interfaces = placesOf(claim);
  return { ...any, addresses: claim.addresses, ...(interfaces && { interfaces }) };
}

/** The constraints without what they say of addresses. */
function whoIn(constraints: AddressConstraints): AddressConstraints {
  const {
    addresses: _,
    interfaces: __,
    pools: ___,
    interfacePools: _i,
    families: ____,
    fallback: _____,
    ...who
  } = constraints;
  return who;
}

/**
 * The request's constraints, with what the claim has: `held`, of which it may rely on each. What it was given for a request it keeps
 * as long as the request is the same, also if that was another address.
 */
export function constraintsWithClaim(
  allocation: AllocationRequest,
  claim: Claim | undefined,
  held: readonly Address[] = claim?.addresses ?? [],
): AddressConstraints {
  const { request } = allocation;
  const heldOn = claim && (placesOf(claim) ?? { [FIRST_INTERFACE]: claim.addresses });
  const ownAddresses = claim === undefined ? held : inOrder(claim, held);
  const constraints = { ...allocation.constraints, ...(heldOn && { heldOn }), ownAddresses };
  const isSameRequest = claim !== undefined && isDeepStrictEqual(claim.request, request);
  return constraints.fallback === undefined || !isSameRequest
    ? constraints
    : { ...constraints, isAsGiven: true };
}

/**
 * The addresses that the claim has already, as the plan counts them. Those of the first interface come first: a request that names no
 * interface keeps one of each family.
 */
function inOrder(claim: Claim, held: readonly Address[]): readonly Address[] {
  const first = addressesOn(claim, FIRST_INTERFACE);
  return first === undefined
    ? held
    : held.toSorted((a, b) => Number(first.includes(b)) - Number(first.includes(a)));
}

/** Whether addresses of the claim would go to other interfaces than they do. */
export function isRewired(claim: Claim | undefined, plan: Plan): boolean {
  if (claim === undefined || !isReserved(claim)) return false;
  const planned = placesPlanned(plan);
  const stays = [...plan.keep, ...exactlyOf(plan)].filter((address) => claim.addresses.includes(address));
  const [was, is] = [formatAddresses(stays, placesOf(claim)), formatAddresses(stays, planned)];
  return was.join() !== is.join();
}

function exactlyOf({ familyPlans }: Plan): readonly Address[] {
  return familyPlans.flatMap(({ exact, candidates }) =>
    exact ? [...candidates].map(({ address }) => address) : [],
  );
}

/** The request with the existing claim's spec, where it follows that. A request built from the cache may be about an older claim of the same name. */
export function withClaimSpec(allocation: AllocationRequest, claim: Claim | undefined): AllocationRequest {
  const { followsClaim } = allocation;
  if (followsClaim === undefined || claim === undefined) return allocation;
  if (followsClaim === "handMade" && claim.handMade !== true) return allocation;
  const { request, retention } = claim;
  return {
    ...allocation,
    request,
    retention,
    constraints: { ...whoIn(allocation.constraints), ...requestToStay(claim) },
  };
}

function isOfFirst(claim: Claim): boolean {
  const { interfaces, interfacePools } = claim.request;
  const places = isReserved(claim) ? placesOf(claim) : interfaces;
  if (places === undefined && interfacePools === undefined) return true;
  return [places, interfacePools].some((one) => one !== undefined && Object.hasOwn(one, FIRST_INTERFACE));
}

/** Without what a namespace asks for the first interface, where the claim has nothing of that. */
function withoutIdleDefault(allocation: AllocationRequest, claim: Claim): AllocationRequest {
  if (allocation.defaultsFirst !== true || isOfFirst(claim)) return allocation;
  return {
    ...allocation,
    request: withoutFirstPools(allocation.request),
    constraints: withoutFirstPools(allocation.constraints),
  };
}

function withoutFirstPools<T extends { readonly interfacePools?: InterfacePools }>(asked: T): T {
  const { [FIRST_INTERFACE]: _, ...others } = asked.interfacePools ?? {};
  const { interfacePools: __, ...rest } = asked;
  return (Object.keys(others).length === 0 ? rest : { ...rest, interfacePools: others }) as T;
}

/**
 * A claim that a person made is changed by its author alone: whoever else comes with its name has the addresses that it has,
 * or will have. A refusal, if he asks for others. The same allocation, if no such claim is in its way.
 */
export function withClaimByHand(
  view: RecordReader,
  requested: AllocationRequest,
  claim: Claim | undefined,
): AllocationRequest | Refusal {
  if (claim?.handMade !== true || requested.userRequested === true || requested.fromSpec === true)
    return requested;
  const allocation = withoutIdleDefault(requested, claim);
  const { constraints } = allocation;
  const { request } = claim;
  const { addresses: its, interfaces: places } = requestToStay(claim);
  if (its !== undefined) {
    if (!fitsByHand(view, allocation, { its, places })) return madeByHandForOthers(claim, constraints);
    const { fallback: _, interfaces: __, ...exactly } = constraints;
    const named = { addresses: its, ...(places && { interfaces: places }) };
    return { ...allocation, request: asClaim(allocation, claim), constraints: { ...exactly, ...named } };
  }
  const isForOthers =
    isOther(constraints.pools, request.pools) ||
    isOther(constraints.families, request.families) ||
    !isSamePools(constraints.interfacePools, request.interfacePools);
  if (isForOthers) return madeByHandForOthers(claim, constraints);
  const {
    pools = constraints.pools,
    interfacePools = constraints.interfacePools,
    families = constraints.families,
  } = request;
  const both = {
    ...(pools === undefined ? {} : { pools }),
    ...(interfacePools === undefined ? {} : { interfacePools }),
    ...(families === undefined ? {} : { families }),
  };
  return { ...allocation, constraints: { ...constraints, ...both } };
}

/** Whether what the claim has is what is asked for, on each interface. */
function fitsByHand(
  view: RecordReader,
  { constraints, request }: AllocationRequest,
  { its, places }: { readonly its: readonly Address[]; readonly places: Interfaces | undefined },
): boolean {
  const isOnEach = namesOf(constraints.interfacePools ?? {}).every((name) =>
    Object.hasOwn(places ?? {}, name),
  );
  if (!isOnEach) return false;
  if (constraints.addresses === undefined || constraints.interfacePools !== undefined) {
    const named = namesOf(request.interfaces ?? {});
    const on = (of: Interfaces | undefined, name: string) => saidOf(of, name) ?? [];
    const isNamed = named.every((name) => sameSet(on(request.interfaces, name), on(places, name)));
    return (
      isNamed &&
      unconstrained(view, { ...constraints, ...(places && { interfaces: places }) }, its) === undefined
    );
  }
  return sameSet(constraints.addresses, its) && isSameInterfaces(request.interfaces, places);
}

/** A claim that says nothing of pools by interface leaves them to whoever asks, and the other way round. */
function isSamePools(asked: InterfacePools | undefined, said: InterfacePools | undefined): boolean {
  return asked === undefined || said === undefined || unitedPools(asked, said) !== undefined;
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
