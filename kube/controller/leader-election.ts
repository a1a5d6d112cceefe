// SPDX-License-Identifier: Apache-2.0
import { messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Random } from "../../allocator/base/ports.ts";

/** Who leads, as it is written for everybody. Times are for people: nobody compares them with his own clock. */
export interface LeaseRecord {
  /** Empty: given back. */
  readonly holder: string;
  readonly durationMs: number;
  /** Milliseconds since 1970. */
  readonly acquiredAt: number;
  readonly renewedAt: number;
  /** How often the holder changed. */
  readonly transitions: number;
}

export interface ObservedLease {
  readonly record: LeaseRecord;
  readonly revision: string;
}

/** The one record of a lease. Writes are compare-and-set and give what was written, or undefined when another was first. */
export interface LeaseLock {
  read(): Promise<ObservedLease | undefined>;
  create(record: LeaseRecord): Promise<ObservedLease | undefined>;
  replace(seen: ObservedLease, record: LeaseRecord): Promise<ObservedLease | undefined>;
}

/** The time during which one leads. */
export interface LeaderTerm {
  /** Aborts when it is over. */
  readonly signal: AbortSignal;
  /** To be asked before every destructive write: false once the lease was not renewed in time, by the monotonic clock. */
  holds(): boolean;
}

export interface LeaseTimings {
  /** Others wait so long after they last saw it renewed. */
  readonly durationMs: number;
  /** Who could not renew it for so long steps down: before anybody else can have it. */
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
}

/** Those of the Kubernetes components. */
const LEASE_TIMINGS: LeaseTimings = { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };
/** Candidates must not try at the same moment (client-go: JitterFactor). */
const JITTER = 1.2;

export interface ElectionOptions {
  readonly box: LeaseLock;
  /** Of this process and no other, also after a restart: a pod's name and a token. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Pick<Random, "fraction">;
  readonly log: Logger;
  readonly timings?: LeaseTimings;
}

/**
 * Does `work` whenever this process leads, until `signal` aborts; then gives the lease back. When the work ends by
 * itself it is done again. Never rejects. The algorithm is client-go's (tools/leaderelection); like it, it decides
 * who collects garbage and guards nothing: two may believe that they lead, a process that was paused for one.
 */
export async function elect(
  options: ElectionOptions,
  work: (term: LeaderTerm) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  await new Election(options).run(work, signal);
}

class Election {
  readonly #options: ElectionOptions;
  readonly #timings: LeaseTimings;
  #seen: ObservedLease | undefined;
  /** Monotonic: when `#seen` was first seen like that. */
  #seenAt = 0;
  /** Monotonic: when the last write that succeeded began. */
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#timings = options.timings ?? LEASE_TIMINGS;
  }

  async run(work: (term: LeaderTerm) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    while (!signal.aborted) {
      if (await this.#attempt()) await this.#serve(work, signal);
      await clock.sleep(this.#timings.retryMs * (1 + JITTER * random.fraction()), signal);
    }
  }

  /** One term, from its first moment to its last. */
  async #serve(work: (term: LeaderTerm) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { log, identity } = this.#options;
    log.info("leads", { lease: identity });
    const over = new AbortController();
    const term = { signal: over.signal, holds: () => !over.signal.aborted && this.#msLeft() > 0 };
    const working = this.#work(work, term).finally(() => over.abort());
    await this.#renew(AbortSignal.any([signal, over.signal]));
    over.abort();
    await working;
    log.info("leads no more", { lease: identity });
    await this.#release();
  }

  async #work(work: (term: LeaderTerm) => Promise<void>, term: LeaderTerm): Promise<void> {
    try {
      await work(term);
    } catch (error) {
      this.#options.log.error("work of the leader failed", { error });
    }
  }

  /** Renews the lease until `ends` aborts or it was lost. */
  async #renew(ends: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      await clock.sleep(this.#timings.retryMs, ends);
      if (ends.aborted || this.#msLeft() <= 0) return;
      const done = new AbortController();
      const attempt = this.#attempt().finally(() => done.abort());
      await clock.sleep(this.#msLeft(), AbortSignal.any([ends, done.signal]));
      // an attempt that hangs must not keep a leader who is none any more
      if (!done.signal.aborted && !ends.aborted) return;
      await attempt;
      if (this.#isOthers()) return;
    }
  }

  /** Takes or renews the lease, if it may be had. */
  async #attempt(): Promise<boolean> {
    try {
      return await this.#tryOnce();
    } catch (error) {
      this.#options.log.warn("lease cannot be reached", { error: messageOf(error) });
      return false;
    }
  }

  async #tryOnce(): Promise<boolean> {
    const { box, identity } = this.#options;
    if (this.#seen?.record.holder === identity && (await this.#write(this.#seen))) return true;
    const found = await box.read();
    if (found === undefined) return await this.#write(undefined);
    this.#observe(found);
    if (this.#isOthers()) return false;
    return await this.#write(found);
  }

  async #write(seen: ObservedLease | undefined): Promise<boolean> {
    const { box, clock } = this.#options;
    const began = clock.monotonic();
    const record = this.#recordAfter(seen?.record);
    const written = await (seen === undefined ? box.create(record) : box.replace(seen, record));
    if (written === undefined) return false;
    this.#observe(written);
    this.#renewedAt = Math.max(began, this.#renewedAt); // one that hung may come after a newer one
    return true;
  }

  #recordAfter(before: LeaseRecord | undefined): LeaseRecord {
    const { clock, identity } = this.#options;
    const now = clock.now();
    const same = before?.holder === identity;
    return {
      holder: identity,
      durationMs: this.#timings.durationMs,
      acquiredAt: same ? before.acquiredAt : now,
      renewedAt: now,
      transitions: (before?.transitions ?? 0) + (before === undefined || same ? 0 : 1),
    };
  }

  #observe(seen: ObservedLease): void {
    if (this.#seen?.revision !== seen.revision) this.#seenAt = this.#options.clock.monotonic();
    this.#seen = seen;
  }

  /** Somebody else has it, and renewed it less than its duration ago. */
  #isOthers(): boolean {
    const { clock, identity } = this.#options;
    if (this.#seen === undefined) return false;
    const { holder, durationMs } = this.#seen.record;
    if (holder === "" || holder === identity) return false;
    return clock.monotonic() < this.#seenAt + durationMs;
  }

  #msLeft(): number {
    return this.#renewedAt + this.#timings.renewDeadlineMs - this.#options.clock.monotonic();
  }

  /** So that the next one need not wait. */
  async #release(): Promise<void> {
    const { box, identity, clock } = this.#options;
    this.#renewedAt = Number.NEGATIVE_INFINITY;
    const seen = this.#seen;
    if (seen?.record.holder !== identity) return;
    try {
      const record = { ...seen.record, holder: "", durationMs: 1_000, renewedAt: clock.now() };
      const released = await box.replace(seen, record);
      if (released !== undefined) this.#observe(released);
    } catch (error) {
      this.#options.log.warn("lease could not be given back", { error: messageOf(error) });
    }
  }
}
