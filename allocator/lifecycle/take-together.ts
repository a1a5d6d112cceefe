// SPDX-License-Identifier: Apache-2.0
// A new claim and its addresses in one write, where the store can do that.

import type { Context } from "../cache/context.ts";
import type { Claim } from "../model/claim.ts";
import type { Candidate, FamilyPlan, Plan } from "../planning/plan.ts";
import type { Stored } from "../store/store.ts";
import type { Acquired } from "./acquire.ts";
import type { AllocationRequest } from "./allocation-request.ts";
import { around } from "./block-conflict.ts";

/** Others take addresses as well, of which the view has not heard yet. */
const TRIES = 8;

/** What is to be taken: for which claim, as it is known, and the claim that is written with the addresses. */
export interface Taking {
  readonly allocation: AllocationRequest;
  readonly known: Stored<"claim"> | undefined;
  readonly nonce: string;
  readonly claimWith: (got: Claim["addresses"]) => Claim;
}

type Together =
  | { readonly kind: "created"; readonly claim: Stored<"claim">; readonly took: readonly Acquired[] }
  /** Nothing was written: the claim is there. */
  | { readonly kind: "again" }
  /** Nothing was written: it goes by single writes, which find out who has what, from the same candidates. */
  | { readonly kind: "single"; readonly familyPlans: readonly FamilyPlan[] };

/** Nobody sees a reservation without its claim, so there is nothing to read back. Throws what the store throws. */
export async function takeTogether(
  context: Context,
  { allocation: { key, constraints, sandbox }, known, nonce, claimWith }: Taking,
  { keep, familyPlans }: Plan,
): Promise<Together> {
  const { store } = context;
  const isNew = known === undefined && constraints.takesOver === undefined && keep.length === 0;
  if (store.createClaim === undefined || !isNew) return { kind: "single", familyPlans };
  const picks = familyPlans.map((familyPlan) => new Picks(familyPlan));
  const single = () => ({ kind: "single", familyPlans: picks.map((pick) => pick.again()) }) as const;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const chosen = picks.flatMap((pick) => pick.current ?? []);
    if (chosen.length < picks.length) return single();
    if (chosen.some(({ address }) => isUnclear(context, address))) return single();
    const addresses = chosen.map(({ address }) => address);
    const claim = { ...claimWith(addresses), ...(sandbox && statusOf(sandbox)) };
    const wanted = chosen.map(({ address, pool }) => ({ address, pool, claim: key, nonce }));
    const answer = await store.createClaim(claim, wanted);
    if (answer.kind === "created") {
      const took = answer.reservations.map((stored) => ({ kind: "took", stored }) as const);
      return { kind: "created", claim: answer.claim, took };
    }
    if (answer.claim) return { kind: "again" };
    if (!picks.every((pick) => pick.passes(answer.addresses))) return single();
  }
  return single();
}

/** Somebody has to look closer: it may have cooled for long enough, or be in a node's block. */
function isUnclear({ view }: Context, address: Candidate["address"]): boolean {
  if (view.poolOf(address) === undefined || view.reservation(address) !== undefined) return true;
  return around(view, address).length > 0;
}

/** The candidates of one family, of which those that were looked at can be had again. */
class Picks {
  readonly #plan: FamilyPlan;
  readonly #rest: Iterator<Candidate>;
  readonly #looked: Candidate[] = [];

  constructor(plan: FamilyPlan) {
    this.#plan = plan;
    this.#rest = plan.candidates[Symbol.iterator]();
    this.#next();
  }

  get current(): Candidate | undefined {
    return this.#looked.at(-1);
  }

  /** Goes on to the next one if this one is taken; false: there is no other to go to. */
  passes(taken: readonly Candidate["address"][]): boolean {
    if (this.current === undefined || !taken.includes(this.current.address)) return true;
    return !this.#plan.exact && this.#next();
  }

  again(): FamilyPlan {
    return { ...this.#plan, candidates: replayed(this.#looked, this.#rest) };
  }

  #next(): boolean {
    const { done, value } = this.#rest.next();
    if (done !== true) this.#looked.push(value);
    return done !== true;
  }
}

function* replayed(looked: readonly Candidate[], rest: Iterator<Candidate>): Generator<Candidate> {
  yield* looked;
  for (let next = rest.next(); next.done !== true; next = rest.next()) yield next.value;
}

function statusOf(attachment: NonNullable<AllocationRequest["sandbox"]>): Pick<Claim, "status"> {
  return { status: { attachment } };
}
