// SPDX-License-Identifier: Apache-2.0
// The plan for several interfaces of a pod: one for each of them, of which no two have the same address (ADR 0030).

import { isRefusal, type Refusal } from "../base/errors.ts";
import { poolsContaining, type RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { linkedTo } from "../model/interface-macs.ts";
import { FIRST_INTERFACE, type Interfaces, interfacesOf, namesOf, saidOf } from "../model/interfaces.ts";
import type { Pool } from "../pool/pool.ts";
import { type Need, poolsForAll } from "./common-nodes.ts";
import type { AddressConstraints, Candidate, FamilyPlan, Networks, Plan } from "./plan.ts";
import type { WantedAny } from "./pool-sources.ts";

/** How one interface is planned. */
interface Planner {
  planOne(view: RecordReader, constraints: AddressConstraints): Plan | Refusal;
  wantedOf(view: RecordReader, constraints: AddressConstraints): WantedAny | Refusal;
}

/** Whether each interface needs a plan of its own: not, where every address is named and no other will do. */
export function isByInterface({ interfaces, interfacePools, fallback }: AddressConstraints): boolean {
  return interfacePools !== undefined || (interfaces !== undefined && fallback !== undefined);
}

export function planInterfaces(
  view: RecordReader,
  constraints: AddressConstraints,
  planner: Planner,
): Plan | Refusal {
  const plan = planEach(view, constraints, planner.planOne);
  if (isRefusal(plan)) return plan;
  const within = poolsOfAll(view, constraints, plan, planner);
  if (within === undefined || isRefusal(within)) return within ?? plan;
  return planEach(view, { ...constraints, within }, planner.planOne);
}

/** The pools that have nodes in common; undefined: it is no matter which are taken, or nothing is. */
function poolsOfAll(
  view: RecordReader,
  constraints: AddressConstraints,
  { keep, familyPlans }: Plan,
  { wantedOf }: Planner,
): ReadonlySet<Pool> | Refusal | undefined {
  if (familyPlans.length === 0) return undefined;
  const needs: Need[] = [];
  for (const name of interfacesIn(constraints)) {
    const own = constraintsOn(constraints, name, keep);
    const wanted = own.addresses === undefined ? wantedOf(view, own) : undefined;
    if (wanted === undefined || isRefusal(wanted)) continue;
    const missing = new Set(
      familyPlans.filter((one) => one.interface === name).map((familyPlan) => familyPlan.family),
    );
    if (missing.size > 0) needs.push({ sources: wanted.sources, missing: [...missing] });
  }
  const fixed = poolsContaining(view, [...keep, ...(constraints.addresses ?? [])]);
  return poolsForAll(view, constraints, needs, fixed);
}

function interfacesIn({ interfaces = {}, interfacePools = {} }: AddressConstraints): readonly string[] {
  return [...new Set([...namesOf(interfaces), ...namesOf(interfacePools)])];
}

function planEach(
  view: RecordReader,
  constraints: AddressConstraints,
  planOne: Planner["planOne"],
): Plan | Refusal {
  const names = interfacesIn(constraints);
  const keptOn = new Map<string, readonly Address[]>();
  const familyPlans: FamilyPlan[] = [];
  // what is named is nobody else's to choose
  for (const name of names.toSorted((a, b) => rank(constraints, a) - rank(constraints, b))) {
    const plan = planOne(view, constraintsOn(constraints, name, [...keptOn.values()].flat()));
    if (isRefusal(plan)) return { ...plan, message: `${plan.message} (interface ${linkedTo(name) ?? name})` };
    keptOn.set(name, plan.keep);
    familyPlans.push(...plan.familyPlans.map((familyPlan) => ({ ...familyPlan, interface: name })));
  }
  const keep = [...keptOn.values()].flat();
  const avoided = new Set([...keep, ...(constraints.addresses ?? [])]);
  return { kind: "take", keep, keptOn: Object.fromEntries(keptOn), familyPlans: apart(familyPlans, avoided) };
}

function rank({ interfaces = {} }: AddressConstraints, name: string): number {
  if (Object.hasOwn(interfaces, name)) return 0;
  return name === FIRST_INTERFACE ? 1 : 2;
}

/** What is asked for one interface, with what the claim has there already, or has beside and nobody else keeps. */
function constraintsOn(
  constraints: AddressConstraints,
  name: string,
  kept: readonly Address[],
): AddressConstraints {
  const {
    addresses: all = [],
    interfaces,
    interfacePools,
    fallback,
    pools: _,
    heldOn,
    networks,
    ...who
  } = constraints;
  const addresses = all.filter((address) => saidOf(interfaces, name)?.includes(address));
  const others = all.filter((address) => !addresses.includes(address));
  const placed = new Set(Object.values(heldOn ?? {}).flat());
  const isHere = (address: Address) =>
    saidOf(heldOn, name)?.includes(address) === true || !placed.has(address);
  const ownAddresses = constraints.ownAddresses?.filter(
    (address) =>
      addresses.includes(address) ||
      (isHere(address) && !others.includes(address) && !kept.includes(address)),
  );
  const pools = saidOf(interfacePools, name) ?? [];
  return {
    ...who,
    ...(addresses.length === 0 ? {} : { addresses }),
    ...(addresses.length === 0 || fallback === undefined ? {} : { fallback }),
    ...(pools.length === 0 ? {} : { pools }),
    ...(ownAddresses === undefined ? {} : { ownAddresses }),
    networks: networksOn(networks, name),
  };
}

/** What is known of the network of one interface. */
export function networksOn(networks: Networks | undefined, name: string): Networks {
  const own = saidOf(networks?.on, name);
  return { names: own ?? [], isAll: false, ...(own === undefined ? {} : { isAttachment: true }) };
}

/** Two interfaces may have the same pool: what one of them was offered is not offered to another. */
function apart(familyPlans: readonly FamilyPlan[], avoided: ReadonlySet<Address>): readonly FamilyPlan[] {
  const offered = new Map<Address, FamilyPlan>();
  function* walk(familyPlan: FamilyPlan, own: ReadonlySet<Address>): Generator<Candidate> {
    for (const candidate of familyPlan.candidates) {
      const { address } = candidate;
      if (avoided.has(address) && !own.has(address)) continue;
      if ((offered.get(address) ?? familyPlan) !== familyPlan) continue;
      offered.set(address, familyPlan);
      yield candidate;
    }
  }
  return familyPlans.map((familyPlan) =>
    familyPlan.exact
      ? familyPlan
      : { ...familyPlan, candidates: walk(familyPlan, new Set(familyPlan.named ?? [])) },
  );
}

/** A plan for addresses that are named, with the interface of each. */
export function withInterfaces(plan: Plan, interfaces: Interfaces | undefined): Plan {
  if (interfaces === undefined) return plan;
  const names = namesOf(interfaces);
  const familyPlans = plan.familyPlans.map((familyPlan) => {
    const [first] = familyPlan.exact ? familyPlan.candidates : [];
    const name = first && names.find((one) => interfaces[one]?.includes(first.address));
    return name === undefined ? familyPlan : { ...familyPlan, interface: name };
  });
  return { ...plan, keptOn: interfacesOf(interfaces, plan.keep) ?? {}, familyPlans };
}

/**
 * The interface of each address that the plan comes to; `got` are those of its parts, in their order. Undefined: none is named.
 */
export function placesIn(
  { keptOn, familyPlans }: Plan,
  got: readonly (Address | undefined)[],
): Interfaces | undefined {
  if (keptOn === undefined) return undefined;
  const places = new Map(Object.entries(keptOn).filter(([, its]) => its.length > 0));
  for (const [n, { interface: name }] of familyPlans.entries()) {
    const address = got[n];
    if (name !== undefined && address !== undefined) places.set(name, [...(places.get(name) ?? []), address]);
  }
  return Object.fromEntries(places);
}

/** Of what is kept or asked for by name: what it would be, if it can be had. */
export function placesPlanned(plan: Plan): Interfaces | undefined {
  return placesIn(
    plan,
    plan.familyPlans.map(({ exact, candidates }) => (exact ? [...candidates][0]?.address : undefined)),
  );
}
