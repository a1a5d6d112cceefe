// SPDX-License-Identifier: Apache-2.0
// Addresses by name, of which any other will do where another has them.

import type { Refusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, type Family, familyOf } from "../ip/address.ts";
import { macOfAddress } from "../ip/mac.ts";
import type { AddressEntry } from "../model/address-request.ts";
import { occupied } from "./occupied.ts";
import { addressOutside } from "./outside-pools.ts";
import type { AddressConstraints, Candidate, FamilyPlan, Plan } from "./plan.ts";
import { poolNameIn } from "./pool-sources.ts";
import { addressTaken } from "./refusal-messages.ts";

/** What is named, and behind it whatever else would do; what the claim has for this request already stays. */
export function withFallback(
  view: RecordReader,
  constraints: AddressConstraints,
  { entry, any }: { readonly entry: AddressEntry; readonly any: Plan },
): Plan {
  const keep: Address[] = [];
  const familyPlans: FamilyPlan[] = [];
  for (const address of entry) {
    const [held, other] = ofFamily(any, familyOf(address));
    const stays =
      held !== undefined &&
      (held === address || constraints.isAsGiven === true || isTaken(view, constraints, address));
    if (stays) keep.push(held);
    else familyPlans.push(firstOf(view, address, { constraints, other }));
  }
  return { kind: "take", keep, familyPlans };
}

function ofFamily(
  { keep, familyPlans }: Plan,
  family: Family,
): readonly [Address | undefined, FamilyPlan | undefined] {
  return [keep.find((one) => familyOf(one) === family), familyPlans.find((one) => one.family === family)];
}

/** The named address, and then any. */
function firstOf(
  view: RecordReader,
  address: Address,
  {
    constraints,
    other,
  }: { readonly constraints: AddressConstraints; readonly other: FamilyPlan | undefined },
): FamilyPlan {
  const pool = view.poolOf(address);
  const isOpen = pool !== undefined && view.blockOwning?.(address) === undefined;
  const isFree = isOpen && occupied(view, pool, address, constraints) === undefined;
  const named: readonly Candidate[] = isFree ? [{ address, pool: pool.name, first: "named" }] : [];
  // of a MAC address no other one will do, and its pool has none to be had without naming it
  const others = macOfAddress(address) === undefined ? other : undefined;
  return {
    family: familyOf(address),
    named: [address],
    exact: false,
    candidates: siblingsLast(named, others?.candidates ?? [], constraints.siblings ?? []),
    exhausted: (skipped) => others?.exhausted(skipped) ?? noneLeft(view, address),
  };
}

/** What the list names for others comes last: each of them has it by name, and may come a moment later. */
function* siblingsLast(
  named: readonly Candidate[],
  others: Iterable<Candidate>,
  siblings: readonly AddressEntry[],
): Generator<Candidate> {
  yield* named;
  const theirs = new Set(siblings.flat());
  const last: Candidate[] = [];
  for (const one of others) {
    if (named.some(({ address }) => address === one.address)) continue;
    if (theirs.has(one.address)) last.push(one);
    else yield one;
  }
  yield* last;
}

function noneLeft(view: RecordReader, address: Address): Refusal {
  const pool = view.poolOf(address);
  return pool === undefined
    ? addressOutside(view, address, () => false)
    : addressTaken(view, pool, address, view.reservation(address)?.record);
}

function isTaken(view: RecordReader, { namespace, name }: AddressConstraints, address: Address): boolean {
  const holder = view.reservation(address)?.record.claim;
  return holder !== undefined && !(holder.namespace === namespace && holder.name === name);
}

/** Where another address may be of. With two families it is of their own pools, if nodes are selected: those have nodes in common. */
export function poolsBehind(
  view: RecordReader,
  { pools }: AddressConstraints,
  entry: AddressEntry,
): readonly string[] {
  const own = [...new Set(entry.flatMap((address) => view.poolOf(address)?.name ?? []))];
  if (pools === undefined) return own;
  const selects = pools.some((name) => view.pool(poolNameIn(name))?.spec.nodeSelector !== undefined);
  return entry.length > 1 && selects ? own : pools;
}
