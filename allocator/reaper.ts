// SPDX-License-Identifier: Apache-2.0
import type { Address } from "./address.ts";
import { type Claim, claimKey, isReserved } from "./claim.ts";
import type { Context } from "./context.ts";
import { assertNever, BerthError, messageOf } from "./errors.ts";
import type { Inventory } from "./inventory.ts";
import { mend } from "./mend.ts";
import type { LogFields } from "./ports.ts";
import { reapReservation, relies } from "./reap.ts";
import { release } from "./release.ts";
import { isHeldBy } from "./reservation.ts";
import { gatherFacts, judge, type Verdict } from "./retention.ts";
import type { Stored } from "./store/store.ts";
import type { View } from "./view.ts";

/** A reservation without its claim is an orphan when it looked the same this long ago. */
export const ORPHAN_GRACE_MS = 30_000;
/** Claims judged in one go, in 1 ms or so: stores and inventories may answer without letting anybody else have a turn. */
const AT_ONCE = 100;
/** Codes of faults that the next record would meet too. */
const OF_ALL = /^(STORE_|TIMED_OUT$|NOT_READY$)/;
/** Records compared in one go, in less than 1 ms. */
const SLICE = 1_000;

/** What one pass did, for the log and the metrics. */
export interface ReapReport {
  readonly orphans: number;
  readonly cooled: number;
  readonly released: number;
  readonly retained: number;
}

/** When a record was first seen without its counterpart, and as which revision: address or claim -> sighting. */
export type Sightings = ReadonlyMap<string, { readonly revision: string; readonly at: number }>;

export interface ReapPlan {
  /** Cooling is over: the address is free again. */
  readonly cooled: readonly Stored<"reservation">[];
  /** Seen without a claim twice, unchanged, with the grace in between. */
  readonly orphans: readonly Stored<"reservation">[];
  readonly sightings: Sightings;
}

/** Decides which of the reservations, all of them if absent, to look at; the deletion itself asks the authority again. */
export function planReap(
  view: View,
  sightings: Sightings,
  now: number,
  reservations: Iterable<Stored<"reservation">> = view.reservations(),
): ReapPlan {
  const cooled: Stored<"reservation">[] = [];
  const orphans: Stored<"reservation">[] = [];
  const next = new Map<string, { revision: string; at: number }>();
  for (const stored of reservations) {
    const { record, revision } = stored;
    if (record.releasedAt !== undefined) {
      const cooldownMs = view.pool(record.pool)?.cooldownMs ?? 0;
      if (now >= record.releasedAt + cooldownMs) cooled.push(stored);
      continue;
    }
    if (relies(view.claim(claimKey(record.claim))?.record, record)) continue;
    const seen = sightings.get(record.address);
    const at = seen?.revision === revision ? seen.at : now;
    next.set(record.address, { revision, at });
    if (now - at >= ORPHAN_GRACE_MS) orphans.push(stored);
  }
  return { cooled, orphans, sightings: next };
}

export interface MendPlan {
  /** Seen twice, unchanged, with the grace in between, without all that they list. */
  readonly bereft: readonly Stored<"claim">[];
  readonly sightings: Sightings;
}

/** Decides which of the claims, all of them if absent, list an address that is not reserved for them. */
export function planMend(
  view: View,
  sightings: Sightings,
  now: number,
  claims: Iterable<Stored<"claim">> = view.claims(),
): MendPlan {
  const bereft: Stored<"claim">[] = [];
  const next = new Map<string, { revision: string; at: number }>();
  for (const stored of claims) {
    const { key, revision, record } = stored;
    const lacks = (address: Address) => {
      const reservation = view.reservation(address)?.record;
      return reservation === undefined || !isHeldBy(reservation, record.nonce);
    };
    if (!isReserved(record) || !record.addresses.some(lacks)) continue;
    const seen = sightings.get(key);
    const at = seen?.revision === revision ? seen.at : now;
    next.set(key, { revision, at });
    if (now - at >= ORPHAN_GRACE_MS) bereft.push(stored);
  }
  return { bereft, sightings: next };
}

export interface ReaperOptions {
  /** What the first look at a claim goes by: may lag behind, costs nothing. That of the decisions if absent. */
  readonly hints?: Inventory;
  /** Asked before every deletion: whoever is to leave the housekeeping to another process stops at once. */
  readonly mayWrite?: () => boolean;
}

/**
 * Repairs what crashes leave and lets go what retention lets go. Run it from one place at a time to save work; two at
 * once are safe. Invariant 6 holds if a pass starts at least every 20 s.
 */
export class Reaper {
  readonly #context: Context;
  readonly #inventory: Inventory;
  readonly #hints: Inventory;
  readonly #mayWrite: () => boolean;
  #sightings: Sightings = new Map();
  #bereft: Sightings = new Map();

  constructor(context: Context, inventory: Inventory, options: ReaperOptions = {}) {
    this.#context = context;
    this.#inventory = inventory;
    this.#hints = options.hints ?? inventory;
    this.#mayWrite = options.mayWrite ?? (() => true);
  }

  /** Wall clock, ms: since when the oldest suspect record has looked the same; undefined when none is suspect. */
  get oldestSuspicion(): number | undefined {
    const all = [...this.#sightings.values(), ...this.#bereft.values()];
    return all.length === 0 ? undefined : all.reduce((oldest, { at }) => Math.min(oldest, at), Infinity);
  }

  async pass(): Promise<ReapReport> {
    const claims = [...this.#context.view.claims()];
    let released = 0;
    let retained = 0;
    for (const [i, stored] of claims.entries()) {
      if (!this.#mayWrite()) break;
      if (i % AT_ONCE === AT_ONCE - 1) await this.#context.clock.sleep(0);
      const verdict = await this.#judgeSafely(stored);
      if (verdict.kind === "release") released++;
      if (verdict.kind === "retain") retained++;
    }
    await this.#mendAll();
    const plan = await this.#planReap();
    this.#sightings = plan.sightings;
    const orphans = await this.#countRemoved(plan.orphans, (stored) =>
      reapReservation(this.#context, stored),
    );
    const cooled = await this.#countRemoved(
      plan.cooled,
      async (stored) => (await this.#context.store.remove("reservation", stored)).kind,
    );
    return { orphans, cooled, released, retained };
  }

  async #countRemoved(
    reservations: readonly Stored<"reservation">[],
    remove: (stored: Stored<"reservation">) => Promise<string>,
  ): Promise<number> {
    let removed = 0;
    for (const stored of reservations) {
      if (!this.#mayWrite()) break;
      if ((await this.#removeSafely(stored, remove)) === "removed") removed++;
    }
    return removed;
  }

  async #removeSafely(
    stored: Stored<"reservation">,
    remove: (stored: Stored<"reservation">) => Promise<string>,
  ): Promise<string> {
    try {
      return await remove(stored);
    } catch (error) {
      this.#passOver("reservation cannot be reaped", { address: stored.key }, error);
      return "passed over";
    }
  }

  async #planReap(): Promise<ReapPlan> {
    const { view, clock } = this.#context;
    const now = clock.now();
    const parts = await this.#inSlices(view.reservations(), (part) =>
      planReap(view, this.#sightings, now, part),
    );
    return {
      cooled: parts.flatMap(({ cooled }) => cooled),
      orphans: parts.flatMap(({ orphans }) => orphans),
      sightings: new Map(parts.flatMap(({ sightings }) => [...sightings])),
    };
  }

  /** Others have their turn between two slices. What changes meanwhile is found out by whoever acts on the plan. */
  async #inSlices<R, P>(records: Iterable<R>, plan: (part: readonly R[]) => P): Promise<P[]> {
    const all = [...records];
    const plans: P[] = [];
    for (let i = 0; i < all.length; i += SLICE) {
      if (i > 0) await this.#context.clock.sleep(0);
      plans.push(plan(all.slice(i, i + SLICE)));
    }
    return plans;
  }

  async #mendAll(): Promise<void> {
    const { view, clock, log } = this.#context;
    const now = clock.now();
    const plans = await this.#inSlices(view.claims(), (part) => planMend(view, this.#bereft, now, part));
    this.#bereft = new Map(plans.flatMap(({ sightings }) => [...sightings]));
    for (const stored of plans.flatMap(({ bereft }) => bereft)) {
      if (!this.#mayWrite()) break;
      try {
        const outcome = await mend(this.#context, stored);
        if (outcome === "mended")
          log.warn("claim lacked a reservation and has it again", { claim: stored.key });
        if (outcome === "given up")
          log.error("claim lost its address and was given up", { claim: stored.key });
      } catch (error) {
        this.#passOver("claim cannot be mended", { claim: stored.key }, error);
      }
    }
  }

  /** One claim that cannot be judged must not keep the others from their turn. */
  async #judgeSafely(stored: Stored<"claim">): Promise<Verdict> {
    try {
      return await this.judgeClaim(stored);
    } catch (error) {
      this.#passOver("claim cannot be judged", { claim: stored.key }, error);
      return { kind: "keep" };
    }
  }

  /** What is wrong with one record says nothing about the next one; what is wrong with the store does. */
  #passOver(message: string, about: LogFields, error: unknown): void {
    if (error instanceof BerthError && OF_ALL.test(error.code)) throw error;
    this.#context.log.error(message, { ...about, error: messageOf(error) });
  }

  /** Judges one claim and does what was decided. The view's copy decides whether to look, the authority's what to do. */
  async judgeClaim(hint: Stored<"claim">): Promise<Verdict> {
    const { clock } = this.#context;
    if (!this.#mayWrite()) return { kind: "keep" };
    if (hint.record.releasing === true) {
      const seen = await this.#context.store.get("claim", hint.key);
      if (seen?.record.releasing === true) await release(this.#context, seen);
      return { kind: "keep" };
    }
    const facts = await gatherFacts(hint.record, this.#hints);
    const first = judge(hint.record, facts, hint.createdAt, clock.now());
    if (first.kind === "keep") return first;
    const seen = await this.#context.store.get("claim", hint.key);
    if (seen === undefined) return { kind: "keep" };
    const again = await gatherFacts(seen.record, this.#inventory);
    const verdict = judge(seen.record, again, seen.createdAt, clock.now());
    await this.#carryOut(seen, verdict);
    return verdict;
  }

  async #carryOut(seen: Stored<"claim">, verdict: Verdict): Promise<void> {
    if (!this.#mayWrite()) return;
    switch (verdict.kind) {
      case "keep":
        return;
      case "release":
        await release(this.#context, seen);
        return;
      case "retain":
        await this.#rewrite(seen, {
          ...seen.record,
          retained: { since: this.#context.clock.now(), because: verdict.because },
        });
        return;
      case "unretain": {
        const { retained: _, ...rest } = seen.record;
        await this.#rewrite(seen, rest);
        return;
      }
      case "unpromise": {
        const { binding: _, ...rest } = seen.record;
        await this.#rewrite(seen, rest);
        return;
      }
      default:
        assertNever(verdict);
    }
  }

  /** A conflict is no failure: whoever changed the claim knew more, and the next pass judges it again. */
  async #rewrite(seen: Stored<"claim">, next: Claim): Promise<void> {
    await this.#context.store.replace("claim", seen, next);
  }
}
