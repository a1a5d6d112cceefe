// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, type Family, familyOf, fromNumber } from "../ip/address.ts";
import { numberAt, pickFree, startOffset } from "../ip/free-address.ts";
import type { AddressEntry } from "../model/address-request.ts";
import { claimKey, isPredecessor } from "../model/claim.ts";
import { linkedTo } from "../model/interface-macs.ts";
import { FIRST_INTERFACE, interfaceOf, saidOf } from "../model/interfaces.ts";
import type { ByFamily } from "../pool/namespace-bounds.ts";
import { familiesOf, intervalsOf, type Pool } from "../pool/pool.ts";
import { routedApart, withCommonNodes } from "./common-nodes.ts";
import { ineligibility, poolDisabled, quotaExceeded, withholdsAddress } from "./eligibility.ts";
import { poolsBehind, withFallback } from "./fallback-plan.ts";
import { isByInterface, networksOn, planInterfaces, withInterfaces } from "./interface-plan.ts";
import { familiesUnsaid, notNamed } from "./named-addresses.ts";
import { nodeFits, onOtherNodes } from "./node-fit.ts";
import { occupied } from "./occupied.ts";
import { addressOutside } from "./outside-pools.ts";
import type { AddressConstraints, Candidate, FamilyPlan, Plan } from "./plan.ts";
import { familiesFor, isIn, type Source, sourcesFor, type WantedAny } from "./pool-sources.ts";
import { addressInBlock, addressTaken, entryRefusal, noFamily, poolExhausted } from "./refusal-messages.ts";

/** Whether a claim with these addresses has exactly what the plan comes to. */
export function isAsPlanned({ familyPlans, keep }: Plan, listed: readonly Address[]): boolean {
  return (
    familyPlans.length === 0 &&
    keep.length === listed.length &&
    keep.every((address) => listed.includes(address))
  );
}

/**
 * Decides which addresses a request gets, and writes nothing: same view in, same plan out. Addresses that are named are checked
 * one by one (`planExact`); for others the plan lists candidates in order (`candidatesFrom`), of which `acquire.ts` reserves one.
 */
export function planAddresses(view: RecordReader, constraints: AddressConstraints): Plan | Refusal {
  if (isByInterface(constraints)) return planInterfaces(view, constraints, { planOne, wantedOf });
  // what names no interface is of the first, whose network may be known
  const first = constraints.interfaces === undefined ? knownNetworks(constraints, FIRST_INTERFACE) : {};
  return planOne(view, { ...constraints, ...first });
}

function planOne(view: RecordReader, constraints: AddressConstraints): Plan | Refusal {
  const { addresses: entry } = constraints;
  if (entry === undefined) return planAny(view, constraints);
  const exact = planExact(view, constraints, entry);
  if (constraints.fallback === undefined || (isRefusal(exact) && exact.code !== "ADDRESS_TAKEN"))
    return exact;
  const apart = routedApart(view, constraints, entry);
  if (apart !== undefined) return apart;
  const { addresses: _, pools: __, ...who } = constraints;
  const pools = poolsBehind(view, constraints, entry);
  const any = planAny(view, { ...who, pools, families: [...new Set(entry.map(familyOf))] });
  return isRefusal(any) ? exact : withFallback(view, constraints, { entry, any });
}

function planExact(view: RecordReader, constraints: AddressConstraints, entry: AddressEntry): Plan | Refusal {
  const unsaid = familiesUnsaid(constraints, entry);
  if (unsaid !== undefined) return unsaid;
  const familyPlans: FamilyPlan[] = [];
  const keep: Address[] = [];
  const wanted = new Map<Pool, ByFamily>(); // pool -> addresses of it, kept ones too
  for (const address of entry) {
    const pool = view.poolOf(address);
    if (pool === undefined)
      return addressOutside(
        view,
        address,
        (one) => ineligibility(view, one, constraints, false) === undefined,
      );
    const held = constraints.ownAddresses?.includes(address) === true;
    const why =
      notNamed(pool, constraints, address) ??
      withholdsAddress(view, pool, { ...constraints, ...networksOf(constraints, address) }, held) ??
      elsewhere(pool, constraints) ??
      entryRefusal(view, pool, address) ??
      inBlock(view, pool, address) ??
      occupied(view, pool, address, constraints);
    if (why !== undefined) return why;
    count(wanted, pool, familyOf(address));
    if (held) keep.push(address);
    else familyPlans.push(exactPlan(view, pool, address));
  }
  const counted = [...(constraints.ownAddresses ?? []), ...goingOver(view, constraints, entry)];
  const plan = withInterfaces({ kind: "take", keep, familyPlans }, constraints.interfaces);
  if (familyPlans.length === 0) return plan;
  const takesAgain = coolingAfter(view, constraints, entry);
  const drops = constraints.ownAddresses?.filter((address) => !entry.includes(address)) ?? [];
  const limited = { ...constraints, ownAddresses: counted, takesAgain, drops };
  const why = beyondLimits(view, limited, wanted) ?? routedApart(view, constraints, entry);
  return why ?? plan;
}

/** Of an address that is named for an interface, the networks of that one. */
function networksOf(constraints: AddressConstraints, address: Address): Pick<AddressConstraints, "networks"> {
  const said = constraints.interfaces && interfaceOf(constraints.interfaces, address);
  return said === undefined ? {} : knownNetworks(constraints, linkedTo(said) ?? said);
}

/** Nothing, where it is not known which network makes the interface. */
function knownNetworks({ networks }: AddressConstraints, name: string): Pick<AddressConstraints, "networks"> {
  return saidOf(networks?.on, name) === undefined ? {} : { networks: networksOn(networks, name) };
}

function elsewhere(pool: Pool, { nodes, namespace }: AddressConstraints): Refusal | undefined {
  if (nodes?.terms === undefined) return undefined; // it may run anywhere
  return nodeFits(nodes, [pool])[0] === "never" ? onOtherNodes([pool], namespace) : undefined;
}

/** Addresses that count for the namespace already, because this claim takes them over from another one. */
function goingOver(view: RecordReader, constraints: AddressConstraints, entry: AddressEntry): Address[] {
  const { takesOver } = constraints;
  if (takesOver === undefined) return [];
  return entry.filter((address) => {
    const { claim, releasedAt } = view.reservation(address)?.record ?? {};
    return (
      claim !== undefined && releasedAt === undefined && isPredecessor(claim, constraints, takesOver.name)
    );
  });
}

/** Addresses that are cooling down after a claim of this name, or after the one that this one takes over from. */
function coolingAfter(view: RecordReader, constraints: AddressConstraints, entry: AddressEntry): Address[] {
  return entry.filter((address) => {
    const { claim, releasedAt } = view.reservation(address)?.record ?? {};
    if (claim === undefined || releasedAt === undefined) return false;
    return (
      claimKey(claim) === claimKey(constraints) ||
      isPredecessor(claim, constraints, constraints.takesOver?.name)
    );
  });
}

function inBlock(view: RecordReader, pool: Pool, address: Address): Refusal | undefined {
  const block = view.blockOwning?.(address);
  return block && addressInBlock(view, pool, address, block);
}

function beyondLimits(
  view: RecordReader,
  constraints: AddressConstraints,
  wanted: ReadonlyMap<Pool, ByFamily>,
): Refusal | undefined {
  for (const [pool, addresses] of wanted) {
    const beyond = quotaExceeded(view, pool, constraints, addresses);
    if (beyond !== undefined) return beyond;
  }
  return undefined;
}

function exactPlan(view: RecordReader, pool: Pool, address: Address): FamilyPlan {
  return {
    family: familyOf(address),
    exact: true,
    candidates: [{ address, pool: pool.name }],
    exhausted: () => addressTaken(view, pool, address, view.reservation(address)?.record),
  };
}

/** What a request that names no address is for: pools, families, and which of its addresses the claim has already. */
function wantedOf(view: RecordReader, constraints: AddressConstraints): WantedAny | Refusal {
  const all = sourcesFor(view, constraints);
  if (isRefusal(all)) return all;
  const families = familiesFor(view, constraints, all);
  const { within } = constraints;
  const sources = within === undefined ? all : all.filter(({ pool }) => within.has(pool));
  const keep = firstOfEach(
    families,
    (constraints.ownAddresses ?? []).filter((address) => all.some(({ part }) => isIn(part, address))),
  );
  return { sources, families, keep };
}

function planAny(view: RecordReader, constraints: AddressConstraints): Plan | Refusal {
  const wanted = wantedOf(view, constraints);
  if (isRefusal(wanted)) return wanted;
  const { families, keep } = wanted;
  const sources = withCommonNodes(view, constraints, wanted);
  if (isRefusal(sources)) return sources;
  const drops = (constraints.ownAddresses ?? []).filter((address) => !keep.includes(address));
  const familyPlans: FamilyPlan[] = [];
  const counted = new Map<Pool, ByFamily>(); // pool -> addresses of it that are kept or that earlier families may take
  for (const address of keep) count(counted, view.poolOf(address), familyOf(address));
  for (const family of families) {
    if (keep.some((address) => familyOf(address) === family)) continue;
    const familyPlan = planFamily(view, { ...constraints, drops }, family, { sources, counted });
    if (isRefusal(familyPlan)) return familyPlan;
    if (familyPlan !== undefined) familyPlans.push(familyPlan);
  }
  return { kind: "take", keep, familyPlans };
}

/** One address of each family: a claim may have been for several interfaces, with more than one. */
function firstOfEach(families: readonly Family[], addresses: readonly Address[]): readonly Address[] {
  const first = families.map((family) => addresses.find((address) => familyOf(address) === family));
  return addresses.filter((address) => first.includes(address));
}

/** Undefined: only disabled pools have the family, where addresses can be kept but not taken, and the request does not insist on it. */
function planFamily(
  view: RecordReader,
  constraints: AddressConstraints,
  family: Family,
  from: { sources: readonly Source[]; counted: Map<Pool, ByFamily> },
): FamilyPlan | Refusal | undefined {
  const having = from.sources.filter(({ part }) => familiesOf(part).includes(family));
  const pools = having.map(({ pool }) => pool);
  if (having.length === 0)
    return noFamily(
      from.sources.map(({ pool }) => pool),
      family,
    );
  const serving = having.filter(({ pool }) => !pool.disabled);
  const [first] = pools;
  if (serving.length === 0) {
    return constraints.families === undefined || first === undefined
      ? undefined
      : poolDisabled(first, constraints.namespace);
  }
  const limits = serving.map(({ pool }) =>
    quotaExceeded(view, pool, constraints, oneMore(from.counted.get(pool), family)),
  );
  const allowed = serving.filter((_, i) => limits[i] === undefined);
  if (allowed.length === 0) return limits[0];
  for (const { pool } of allowed) count(from.counted, pool, family);
  return {
    family,
    exact: false,
    candidates: candidatesFrom(view, allowed, family, `${constraints.namespace}/${constraints.name}`),
    exhausted: (skipped) => poolExhausted(view, pools, family, skipped),
  };
}

function count(counts: Map<Pool, ByFamily>, pool: Pool | undefined, family: Family): void {
  if (pool !== undefined) counts.set(pool, oneMore(counts.get(pool), family));
}

function oneMore(counts: ByFamily = {}, family: Family): ByFamily {
  return { ...counts, [family]: (counts[family] ?? 0) + 1 };
}

/** Free addresses of the sources in their order, in each beginning where the identity's hash points. */
function* candidatesFrom(
  view: RecordReader,
  sources: readonly Source[],
  family: Family,
  seed: string,
): Generator<Candidate> {
  for (const { pool, part } of sources) {
    const space = intervalsOf(part, family);
    const start = startOffset(seed, space);
    const own = numberAt(space, start);
    for (const n of pickFree(space, view.unpickable(pool, family), start)) {
      const candidate = { address: fromNumber(n, family), pool: pool.name };
      yield n === own ? { ...candidate, first: "own" } : candidate;
    }
  }
}
