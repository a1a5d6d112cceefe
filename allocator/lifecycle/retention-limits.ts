// SPDX-License-Identifier: Apache-2.0

import { counted } from "../base/counted.ts";
import { shortDuration } from "../base/go-duration.ts";
import type { Context } from "../cache/context.ts";
import { poolsContaining, type RecordReader } from "../cache/reader.ts";
import { type Claim, claimKey, hadPod, type Retention } from "../model/claim.ts";
import { mostRetainedBy } from "../pool/namespace-bounds.ts";
import type { Pool } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import { HOLD_TIMEOUT_MS } from "./hold.ts";
import { decideRetention, type OwnerState, type RetentionDecision } from "./retention.ts";
import { ServerTimes } from "./server-times.ts";

/** What a pool allows of a claim's retention, and why less than the claim asks for; no words: all of it. */
interface AllowedRetention {
  readonly retention: Retention;
  readonly because?: string;
}

/** A claim that is marked as retained, as its owner was seen just now. */
export interface Marked {
  readonly key: string;
  /** The time in the mark. */
  readonly since: number;
  /** `unknown` for what could not be seen: it counts for no limit, and was not needed by that. */
  readonly isNeeded: boolean | "unknown";
}

/** Keys of claims that are marked as retained, the oldest mark first -> how many are before it. */
type Ranks = ReadonlyMap<string, number>;

/** The order of retained claims of the same pool and namespace is looked up again after this. */
const RANKS_MS = 1_000;
/** A claim that is needed again is marked as such after this, unless it was bound before: that takes the mark of retention away as well. */
const TAKEN_UP_MS = 30_000;

/**
 * What the limits of its pools leave of a claim's retention (ADR 0010): the shorter ttl, and nothing beyond so many
 * retained claims of one namespace, where those that are retained for longest stay. A claim that no pod ever had goes
 * with its owner. Counted in the view: a pass may retain too many, and the next one lets those go again.
 */
export class RetentionLimits {
  readonly #context: Pick<Context, "view" | "clock">;
  readonly #stamps = new ServerTimes();
  #neededSince = new Map<string, number>(); // key of a claim that is marked as retained and needed again -> monotonic, ms
  #outdated = new Map<string, number>(); // key of a claim that was needed since it was marked -> the time in the mark
  #ranks = new Map<string, Ranks>(); // pool/namespace -> those of its claims
  #until = Number.NEGATIVE_INFINITY;

  constructor(context: Pick<Context, "view" | "clock">) {
    this.#context = context;
  }

  /** All claims that are marked as retained. Those that are needed again count for no limit. */
  noteMarked(marked: readonly Marked[]): void {
    const now = this.#context.clock.monotonic();
    const needed = marked.filter(({ isNeeded }) => isNeeded !== false);
    this.#neededSince = new Map(needed.map(({ key }) => [key, this.#neededSince.get(key) ?? now]));
    const outdated = marked.filter(
      ({ key, since, isNeeded }) => isNeeded === true || this.#outdated.get(key) === since,
    );
    this.#outdated = new Map(outdated.map(({ key, since }) => [key, since]));
  }

  /** What becomes of the claim: what it is to be kept for is its owner's business, how much of that there may be, the pool's. */
  judge(stored: Stored<"claim">, facts: OwnerState): RetentionDecision {
    const verdict = this.#verdict(stored, facts);
    if (verdict.kind === "unretain") return this.#isBoundSoon(stored, facts) ? { kind: "keep" } : verdict;
    this.#neededSince.delete(stored.key);
    return this.#isOutdated(stored) ? this.#verdict(withoutMark(stored), facts) : verdict;
  }

  /** Its identity was needed since it was marked: its time begins anew. */
  #isOutdated({ key, record: { retained } }: Stored<"claim">): boolean {
    return retained !== undefined && this.#outdated.get(key) === retained.since;
  }

  /** Its pod is about to come, and what binds it writes all that there is to write. */
  #isBoundSoon({ key, record }: Stored<"claim">, { isGuessed = false }: OwnerState): boolean {
    const { clock, view } = this.#context;
    const now = clock.monotonic();
    const since = this.#neededSince.get(key) ?? now;
    this.#neededSince.set(key, since);
    if (record.retained !== undefined && !isGuessed) this.#outdated.set(key, record.retained.since);
    return now - since < TAKEN_UP_MS && isRetainedBeyondHold(view, record, clock.now());
  }

  #verdict(stored: Stored<"claim">, facts: OwnerState): RetentionDecision {
    const now = this.#context.clock.now();
    const { record, createdAt } = this.#stamps.met(stored, now);
    const withoutLimits = decideRetention(record, facts, createdAt, now);
    if (withoutLimits.kind === "unretain") return withoutLimits;
    if (withoutLimits.kind !== "retain" && record.retained === undefined) return withoutLimits;
    // a choice of a newer version releases nothing, and what it says of limits is not known either
    if (saysMore(stored)) return withoutLimits;
    const { retention, because } = this.of(record);
    const verdict = decideRetention({ ...record, retention }, facts, createdAt, now);
    if (verdict.kind !== "release") return verdict;
    const words = because ?? (verdict.reason === "expired" ? this.#expired(record) : undefined);
    return words === undefined ? verdict : { ...verdict, because: words };
  }

  of(claim: Claim): AllowedRetention {
    const { retained } = claim;
    const unused = retained === undefined && !hadPod(claim) && claim.retention.whenDeleted === "Retain";
    const retention: Retention = unused ? { ...claim.retention, whenDeleted: "Release" } : claim.retention;
    const pools = poolsContaining(this.#context.view, claim.addresses);
    for (const pool of pools) {
      const full = this.#fullWithout(pool, claim);
      if (full === undefined) continue;
      const kept = retained === undefined ? none(retention) : { ...retention, ttlMs: 0 };
      return { retention: kept, because: full };
    }
    const allowed = { ...retention, ttlMs: allowedTtlMs(retention, pools) };
    return { retention: allowed, ...(unused ? { because: "no pod ever had its addresses" } : {}) };
  }

  /** Why the claim cannot be retained, or not any longer. */
  #fullWithout({ name, retention }: Pool, claim: Claim): string | undefined {
    const most = mostRetainedBy(claim.namespace, retention);
    const marked: Ranks = this.#ranked().get(`${name}/${claim.namespace}`) ?? new Map();
    const key = claimKey(claim);
    const rank = claim.retained === undefined ? marked.size : (marked.get(key) ?? -1);
    if (rank < most) return undefined;
    const others = new Set([...this.#neededSince.keys(), ...(claim.retained === undefined ? [key] : [])]);
    const uncounted = [...others].flatMap((one) => marked.get(one) ?? []);
    // without a mark, or with one that counts no more, it is behind all that count
    if (rank - uncounted.filter((one) => one < rank).length < most) return undefined;
    const count = marked.size - uncounted.length;
    return (
      `namespace ${claim.namespace} has ${counted(count, "claim that is", "claims that are")} retained in pool ${JSON.stringify(name)}, which keeps ` +
      `${most}; release some, or raise limits.retention.perNamespace of the pool`
    );
  }

  /** Undefined: it was retained for as long as it asks for itself. */
  #expired({ retention: { ttlMs }, addresses }: Claim): string | undefined {
    const pools = poolsContaining(this.#context.view, addresses);
    const shorter = pools.find(({ retention }) => ttlMs === null || retention.ttlMs < ttlMs);
    if (shorter === undefined) return undefined;
    const most = shortDuration(shorter.retention.ttlMs);
    return `it was retained for ${most}, the most that pool ${JSON.stringify(shorter.name)} allows; raise limits.retention.ttl of the pool for others`;
  }

  #ranked(): ReadonlyMap<string, Ranks> {
    const now = this.#context.clock.monotonic();
    if (now < this.#until) return this.#ranks;
    const retained: { record: Claim; since: number; key: string }[] = [];
    for (const { record, key } of this.#context.view.claims("retained"))
      if (record.retained !== undefined) retained.push({ record, since: record.retained.since, key });
    retained.sort((a, b) => a.since - b.since || (a.key < b.key ? -1 : 1));
    const ranks = new Map<string, Map<string, number>>();
    for (const { record, key } of retained) {
      for (const { name } of poolsContaining(this.#context.view, record.addresses)) {
        const place = `${name}/${record.namespace}`;
        const ranked = ranks.get(place) ?? new Map<string, number>();
        ranks.set(place, ranked.set(key, ranked.size));
      }
    }
    this.#ranks = ranks;
    this.#until = now + RANKS_MS;
    return ranks;
  }
}

/** Whether it stays retained for longer than a pod is waited for: a pod that comes finds it, although nothing is written of it before. */
export function isRetainedBeyondHold(view: RecordReader, claim: Claim, now: number): boolean {
  const { retained, retention } = claim;
  if (retained === undefined) return false;
  const choice = retained.because === "scaled" ? retention.whenScaled : retention.whenDeleted;
  const ttlMs = allowedTtlMs(retention, poolsContaining(view, claim.addresses));
  return choice === "Retain" && (ttlMs === null || retained.since + ttlMs - now > HOLD_TIMEOUT_MS);
}

/** How long a claim stays retained: as it asks, or as long as the strictest of its pools allows; null: for ever. */
export function allowedTtlMs(
  { ttlMs }: Pick<Retention, "ttlMs">,
  pools: readonly Pick<Pool, "retention">[],
): number | null {
  const shortest = Math.min(ttlMs ?? Number.POSITIVE_INFINITY, ...pools.map((pool) => pool.retention.ttlMs));
  return Number.isFinite(shortest) ? shortest : null;
}

function withoutMark(stored: Stored<"claim">): Stored<"claim"> {
  const { retained: _, ...record } = stored.record;
  return { ...stored, record };
}

/** Its retention has a choice that is not known here. */
function saysMore({ unknown = [] }: Stored<"claim">): boolean {
  return unknown.some((one) => one.path[0] === "retention" && "takenFor" in one);
}

function none(retention: Retention): Retention {
  return { ...retention, whenDeleted: "Release", whenScaled: "Release" };
}
