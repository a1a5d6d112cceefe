// SPDX-License-Identifier: Apache-2.0

import { inParallel } from "../base/parallel.ts";
import type { LogFields } from "../base/ports.ts";
import type { Context } from "../cache/context.ts";
import { ownReader } from "../demand/foreign-pools.ts";
import { hasToCool, release } from "../lifecycle/release.ts";
import { isSettled, observeOwner, type RetentionDecision } from "../lifecycle/retention.ts";
import { type Marked, RetentionLimits } from "../lifecycle/retention-limits.ts";
import { ServerTimes } from "../lifecycle/server-times.ts";
import type { OwnReader } from "../manifest/pod-claim.ts";
import { type Claim, isKeptByOthers } from "../model/claim.ts";
import type { ClusterState } from "../model/cluster-state.ts";
import type { Stored } from "../store/store.ts";
import { carryOut } from "./carry-out.ts";
import { repairClaim } from "./claim-repair.ts";
import { inSlices } from "./in-slices.ts";
import { type FirstSeen, findBroken, findOrphans, freeOrphan, type OrphanPlan } from "./orphans.ts";
import { PassFaults } from "./pass-faults.ts";
import { type PassScope, Unsettled } from "./unsettled.ts";

/** Claims judged in one go, in 1 ms or so: stores and inventories may answer without letting anybody else have a turn. */
const AT_ONCE = 100;
/** Records compared in one go, in 1 ms or so. */
const SLICE = 200;
/** Records whose calls are under way at once: a release is six calls or so, one after the other, and a namespace may lose thousands of pods. */
const IN_PARALLEL = 16;

/** What one pass did, for the log and the metrics. */
export interface GcReport {
  readonly orphans: number;
  readonly cooled: number;
  readonly released: number;
  readonly retained: number;
}

interface GarbageCollectorOptions {
  /** What the first look at a claim goes by: may lag behind, costs nothing. That of the decisions if absent. */
  readonly cachedState?: ClusterState;
  /** Asked before every deletion: a process that is no longer the leader stops at once. */
  readonly mayWrite?: () => boolean;
  /** Told of every claim that a limit of its pool lets go although it asks to be retained. */
  readonly notRetained?: (claim: Stored<"claim">, because: string) => void;
}

/**
 * Repairs what crashes leave and lets go what retention lets go. Run it from one place at a time to save work; two at
 * once are safe. Invariant 6 holds if a pass starts at least every 20 s.
 */
export class GarbageCollector {
  readonly #context: Context;
  readonly #own: OwnReader;
  readonly #inventory: ClusterState;
  readonly #cachedState: ClusterState;
  readonly #mayWrite: () => boolean;
  readonly #limits: RetentionLimits;
  readonly #faults: PassFaults;
  readonly #notRetained: (claim: Stored<"claim">, because: string) => void;
  #firstSeen: FirstSeen;
  #broken: FirstSeen;
  readonly #stamps = new ServerTimes();
  readonly #unsettled: Unsettled;

  constructor(context: Context, inventory: ClusterState, options: GarbageCollectorOptions = {}) {
    this.#context = context;
    this.#own = ownReader(context);
    this.#inventory = inventory;
    this.#cachedState = options.cachedState ?? inventory;
    this.#mayWrite = options.mayWrite ?? (() => true);
    this.#limits = new RetentionLimits(context);
    this.#faults = new PassFaults(context);
    this.#notRetained = options.notRetained ?? (() => {});
    this.#unsettled = new Unsettled(context, this.#cachedState);
  }

  /** Hears of no changes any more. Repeatable. */
  close(): void {
    this.#unsettled.close();
  }

  /** Wall clock, ms: since when the oldest candidate for removal has looked the same; undefined when there is none. */
  get oldestCandidateSince(): number | undefined {
    const all = [...(this.#firstSeen?.values() ?? []), ...(this.#broken?.values() ?? [])];
    return all.length === 0 ? undefined : all.reduce((oldest, { at }) => Math.min(oldest, at), Infinity);
  }

  async pass(): Promise<GcReport> {
    this.#faults.forgetOld();
    await this.#noteNeeded();
    try {
      return await this.#passOver(await this.#unsettled.begin());
    } catch (error) {
      this.#unsettled.addAll(); // not all that was to be looked at was
      throw error;
    }
  }

  async #passOver(scope: PassScope): Promise<GcReport> {
    const counts = { keep: 0, release: 0, retain: 0, unretain: 0, "release-hold": 0 };
    const { clock } = this.#context;
    await inSlices(clock, scope.claims(), AT_ONCE, (part) => this.#judgeAll(part, counts));
    await this.#repairAll(scope.claims());
    const plan = await this.#planCollection(scope.reservations());
    this.#firstSeen = plan.firstSeen;
    const orphans = await this.#countRemoved(plan.orphans, (stored) => freeOrphan(this.#context, stored));
    const cooled = await this.#countRemoved(
      plan.cooled,
      async (stored) => (await this.#context.store.remove("reservation", stored)).kind,
    );
    return { orphans, cooled, released: counts.release, retained: counts.retain };
  }

  /** Whatever is not judged, or not settled by that, comes up again in the next pass. */
  async #judgeAll(
    part: readonly Stored<"claim">[],
    counts: Record<RetentionDecision["kind"], number>,
  ): Promise<void> {
    this.#unsettled.take("claim", part);
    const again = new Set(part.map(({ key }) => key));
    await this.#each(part, async (stored) => {
      const verdict = await this.#judgeSafely(stored);
      counts[verdict.kind]++;
      if (verdict.kind !== "keep" || verdict.isSettled !== true) return;
      this.#unsettled.settle(stored.record);
      again.delete(stored.key);
    });
    this.#unsettled.add("claim", again);
  }

  /** Before any claim is judged: whether there is room for one among those that are retained depends on the others. */
  async #noteNeeded(): Promise<void> {
    const marked: Marked[] = [];
    let i = 0;
    for (const { key, record } of this.#context.view.claims("retained")) {
      if (i++ % AT_ONCE === AT_ONCE - 1) await this.#context.clock.sleep(0);
      if (record.retained === undefined) continue;
      const isNeeded = await this.#isNeeded(key, record);
      marked.push({ key, since: record.retained.since, isNeeded });
    }
    this.#limits.noteMarked(marked);
  }

  /** Of one that cannot be looked at it is not known: nothing else is released on its account. */
  async #isNeeded(key: string, record: Claim): Promise<Marked["isNeeded"]> {
    if (this.#faults.isResting(key)) return "unknown";
    try {
      const { owner, isGuessed } = await observeOwner(record, this.#cachedState, this.#own);
      return isGuessed === true ? "unknown" : owner === "needed";
    } catch (error) {
      await this.#faults.passOver("owner of a retained claim cannot be looked at", aboutClaim(key), error);
      return "unknown";
    }
  }

  async #countRemoved(
    reservations: readonly Stored<"reservation">[],
    remove: (stored: Stored<"reservation">) => Promise<string>,
  ): Promise<number> {
    let removed = 0;
    await this.#each(reservations, async (stored) => {
      if ((await this.#removeSafely(stored, remove)) === "removed") removed++;
    });
    return removed;
  }

  /** Works on all of them, so many at once, for as long as it may write: what one waits for keeps no other. */
  async #each<R>(records: readonly R[], work: (record: R) => Promise<void>): Promise<void> {
    await inParallel(records, IN_PARALLEL, async (record) => {
      if (this.#mayWrite()) await work(record);
    });
  }

  async #removeSafely(
    stored: Stored<"reservation">,
    remove: (stored: Stored<"reservation">) => Promise<string>,
  ): Promise<string> {
    const { key } = stored;
    if (this.#faults.isResting(key)) return "passed over";
    try {
      const outcome = await remove(stored);
      this.#faults.passed(key);
      return outcome;
    } catch (error) {
      const about = { key, fields: { address: key } };
      await this.#faults.passOver("orphaned reservation cannot be removed", about, error);
      return "passed over";
    }
  }

  async #planCollection(reservations: Iterable<Stored<"reservation">>): Promise<OrphanPlan> {
    const { view, clock } = this.#context;
    const now = clock.now();
    const parts = await inSlices(clock, reservations, SLICE, (part) => {
      this.#unsettled.take("reservation", part);
      const plan = findOrphans(view, this.#firstSeen, now, { reservations: part, stamps: this.#stamps });
      this.#unsettled.add("reservation", plan.unsettled);
      return plan;
    });
    return {
      cooled: parts.flatMap(({ cooled }) => cooled),
      orphans: parts.flatMap(({ orphans }) => orphans),
      firstSeen: new Map(parts.flatMap(({ firstSeen }) => [...firstSeen])),
      unsettled: parts.flatMap(({ unsettled }) => unsettled),
    };
  }

  async #repairAll(claims: Iterable<Stored<"claim">>): Promise<void> {
    const { view, clock, log } = this.#context;
    const now = clock.now();
    const plans = await inSlices(clock, claims, SLICE, (part) => findBroken(view, this.#broken, now, part));
    this.#broken = new Map(plans.flatMap(({ firstSeen }) => [...firstSeen]));
    this.#unsettled.add("claim", this.#broken.keys());
    const broken = plans.flatMap((plan) => plan.broken);
    await this.#each(broken, async (stored) => {
      try {
        const outcome = await repairClaim(this.#context, stored);
        if (outcome === "repaired")
          log.warn("claim lacked a reservation and has it again", { claim: stored.key });
        if (outcome === "abandoned")
          log.error("claim lost its address and was given up", { claim: stored.key });
      } catch (error) {
        await this.#faults.passOver("claim cannot be repaired", aboutClaim(stored.key), error);
      }
    });
  }

  /** One claim that cannot be judged must not keep the others from their turn. */
  async #judgeSafely(stored: Stored<"claim">): Promise<RetentionDecision> {
    const { key } = stored;
    if (this.#faults.isResting(key)) return { kind: "keep" };
    try {
      const verdict = await this.judgeClaim(stored);
      this.#faults.passed(key);
      return verdict;
    } catch (error) {
      await this.#faults.passOver("claim cannot be judged", aboutClaim(key), error);
      return { kind: "keep" };
    }
  }

  /** Judges one claim and does what was decided. The cached copy decides whether to look, the stored one what to do. */
  async judgeClaim(hint: Stored<"claim">): Promise<RetentionDecision> {
    if (!this.#mayWrite()) return { kind: "keep" };
    if (hint.record.releasing === true) {
      if (isKeptByOthers(hint.record) && !hasToCool(this.#context, hint.record)) return { kind: "keep" };
      const seen = await this.#context.store.get("claim", hint.key);
      if (seen?.record.releasing === true) await release(this.#context, seen);
      return { kind: "keep" };
    }
    const facts = await observeOwner(hint.record, this.#cachedState, this.#own);
    const first = this.#limits.judge(hint, facts);
    if (first.kind === "keep") return isSettled(hint, facts) ? SETTLED : first;
    const seen = await this.#context.store.get("claim", hint.key);
    if (seen === undefined) return { kind: "keep" };
    const again = await observeOwner(seen.record, this.#inventory, this.#own);
    const verdict = this.#limits.judge(seen, again);
    await this.#carryOut(seen, verdict);
    return verdict;
  }

  async #carryOut(seen: Stored<"claim">, verdict: RetentionDecision): Promise<void> {
    if (!this.#mayWrite()) return;
    if (verdict.kind === "release" && verdict.because !== undefined) {
      this.#context.log.info("claim is not retained", { claim: seen.key, reason: verdict.because });
      this.#notRetained(seen, verdict.because);
    }
    await carryOut(this.#context, seen, verdict);
  }
}

const SETTLED: RetentionDecision = { kind: "keep", isSettled: true };

function aboutClaim(key: string): { key: string; fields: LogFields } {
  return { key, fields: { claim: key } };
}
