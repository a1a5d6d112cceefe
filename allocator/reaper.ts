// SPDX-License-Identifier: Apache-2.0
import type { Address } from "./address.ts";
import { type Claim, claimKey, isReserved } from "./claim.ts";
import type { Context } from "./context.ts";
import { assertNever, BerthError, messageOf } from "./errors.ts";
import type { Inventory } from "./inventory.ts";
import { mend } from "./mend.ts";
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

/** Decides which reservations to look at; the deletion itself asks the authority again. */
export function planReap(view: View, sightings: Sightings, now: number): ReapPlan {
  const cooled: Stored<"reservation">[] = [];
  const orphans: Stored<"reservation">[] = [];
  const next = new Map<string, { revision: string; at: number }>();
  for (const stored of view.reservations()) {
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

/** Decides which claims to look at, because they list an address that is not reserved for them. */
export function planMend(view: View, sightings: Sightings, now: number): MendPlan {
  const bereft: Stored<"claim">[] = [];
  const next = new Map<string, { revision: string; at: number }>();
  for (const stored of view.claims()) {
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

/**
 * Repairs what crashes leave and lets go what retention lets go. Run it from one place at a time to save work; two at
 * once are safe. Invariant 6 holds if a pass starts at least every 20 s.
 */
export class Reaper {
  readonly #context: Context;
  readonly #inventory: Inventory;
  #sightings: Sightings = new Map();
  #bereft: Sightings = new Map();

  constructor(context: Context, inventory: Inventory) {
    this.#context = context;
    this.#inventory = inventory;
  }

  async pass(): Promise<ReapReport> {
    const claims = [...this.#context.view.claims()];
    let released = 0;
    let retained = 0;
    for (const [i, stored] of claims.entries()) {
      if (i % AT_ONCE === AT_ONCE - 1) await this.#context.clock.sleep(0);
      const verdict = await this.#judgeSafely(stored);
      if (verdict.kind === "release") released++;
      if (verdict.kind === "retain") retained++;
    }
    await this.#mendAll();
    const plan = planReap(this.#context.view, this.#sightings, this.#context.clock.now());
    this.#sightings = plan.sightings;
    let orphans = 0;
    for (const stored of plan.orphans) {
      if ((await reapReservation(this.#context, stored)) === "removed") orphans++;
    }
    let cooled = 0;
    for (const stored of plan.cooled) {
      if ((await this.#context.store.remove("reservation", stored)).kind === "removed") cooled++;
    }
    return { orphans, cooled, released, retained };
  }

  async #mendAll(): Promise<void> {
    const { view, clock, log } = this.#context;
    const plan = planMend(view, this.#bereft, clock.now());
    this.#bereft = plan.sightings;
    for (const stored of plan.bereft) {
      try {
        const outcome = await mend(this.#context, stored);
        if (outcome === "mended")
          log.warn("claim lacked a reservation and has it again", { claim: stored.key });
        if (outcome === "given up")
          log.error("claim lost its address and was given up", { claim: stored.key });
      } catch (error) {
        this.#passOver("claim cannot be mended", stored, error);
      }
    }
  }

  /** One claim that cannot be judged must not keep the others from their turn. */
  async #judgeSafely(stored: Stored<"claim">): Promise<Verdict> {
    try {
      return await this.judgeClaim(stored);
    } catch (error) {
      this.#passOver("claim cannot be judged", stored, error);
      return { kind: "keep" };
    }
  }

  #passOver(message: string, { key }: Stored<"claim">, error: unknown): void {
    if (error instanceof BerthError && error.code.startsWith("STORE_")) throw error;
    this.#context.log.error(message, { claim: key, error: messageOf(error) });
  }

  /** Judges one claim and does what was decided. The view's copy decides whether to look, the authority's what to do. */
  async judgeClaim(hint: Stored<"claim">): Promise<Verdict> {
    const { clock } = this.#context;
    if (hint.record.releasing === true) {
      const seen = await this.#context.store.get("claim", hint.key);
      if (seen?.record.releasing === true) await release(this.#context, seen);
      return { kind: "keep" };
    }
    const facts = await gatherFacts(hint.record, this.#inventory);
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
