// SPDX-License-Identifier: Apache-2.0
import type { Spread } from "../cache/spread.ts";
import { type Address, compareAddresses, toNumber } from "../ip/address.ts";
import type { Candidate, FamilyPlan } from "../planning/plan.ts";

/** So many of the other half are passed over before one is taken as it comes. */
const PASSED_OVER = 16;

/** Who takes, and what keeps it apart from others: absent, the plan's order stands. */
interface Taker {
  readonly spread: Spread | undefined;
  /** Key of the claim. */
  readonly claim: string;
}

/**
 * The candidates, each once, in an order that keeps out of the way of whoever takes addresses at the same moment: what another
 * claim of this process asked for comes last, and so does the half that is another replica's. What the identity's name leads
 * to is of no half, what the request names stays first, and no pool comes before the one that it stands behind.
 */
export function* spreadOut(candidates: Iterable<Candidate>, { spread, claim }: Taker): Generator<Candidate> {
  if (spread === undefined) {
    yield* candidates;
    return;
  }
  let later: Candidate[] = [];
  let pool: string | undefined;
  let passed = 0;
  for (const candidate of candidates) {
    if (candidate.pool !== pool) {
      yield* later;
      [later, pool, passed] = [[], candidate.pool, 0];
    }
    const { address, first } = candidate;
    const isOthers = first === undefined && passed < PASSED_OVER && isOfOtherHalf(address, spread);
    if (first === "named" || !(isOthers || spread.wasTriedBeside(address, claim))) {
      yield candidate;
      continue;
    }
    if (isOthers) passed++;
    later.push(candidate);
  }
  yield* later;
}

function isOfOtherHalf(address: Address, spread: Spread): boolean {
  const half = spread.half();
  return half !== undefined && (toNumber(address) % 2n === 0n) !== (half === "even");
}

/** What is named first, by address: of two that name the same addresses in opposite orders, one gets them all. */
export function inOneOrder(familyPlans: readonly FamilyPlan[]): readonly FamilyPlan[] {
  const named = ({ exact, candidates }: FamilyPlan) => {
    if (!exact) return undefined;
    const [only] = candidates;
    return only?.address;
  };
  return familyPlans.toSorted((a, b) => {
    const [first, second] = [named(a), named(b)];
    if (first === undefined || second === undefined)
      return Number(first === undefined) - Number(second === undefined);
    return compareAddresses(first, second);
  });
}
