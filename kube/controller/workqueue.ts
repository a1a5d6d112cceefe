// SPDX-License-Identifier: Apache-2.0

import { Backoff } from "../../allocator/base/backoff.ts";
import {
  type Clock,
  type Logger,
  type Metrics,
  noopMetrics,
  type Random,
} from "../../allocator/base/ports.ts";
import { DelayQueue } from "./delay-queue.ts";
import { QueueMetrics } from "./queue-metrics.ts";
import { RetryTurns } from "./retry-turns.ts";

/** How one look at a key ended. */
export type Outcome =
  | { readonly kind: "done" }
  /** Waiting for a moment that is known. `unfinished`: the work makes a pause, and how it goes is not known yet. */
  | { readonly kind: "again"; readonly afterMs: number; readonly unfinished?: true }
  /** Could not, this time: again later, and later still each time. */
  | { readonly kind: "retry"; readonly cause: unknown }
  /** A person must act; nothing to do until something changes. */
  | { readonly kind: "rejected"; readonly reason: string };

export const DONE: Outcome = { kind: "done" };

export interface WorkQueueOptions {
  /** For log lines and metrics. */
  readonly name: string;
  /** Brings the world of one key into order, from what is there now. What it throws counts as `retry`. */
  readonly work: (key: string, signal: AbortSignal) => Promise<Outcome>;
  readonly clock: Clock;
  readonly random: Pick<Random, "fraction">;
  readonly log: Logger;
  /** Keys at a time, default 4. */
  readonly concurrency?: number;
  readonly metrics?: Metrics;
}

/** client-go's first wait; a minute at most, since what is in order after a failure should not wait for 1000 s. */
const RETRY = { base: 5, longest: 60_000 };
/** Given as the reason: without one, an abort makes an error and its stack, at every change in the cluster. */
const WOKEN = "woken";
/** Looks before others have their turn: most of them ask nobody, and thousands of keys may come at once. */
const LOOKS_IN_A_TURN = 16;

/**
 * A queue of keys. A key that waits is not added twice; one that is worked on and added again is worked on once more
 * afterwards, never twice at a time.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Set<string>();
  #heads = this.#waiting.values();
  readonly #working = new Set<string>();
  readonly #again = new Set<string>(); // added while they were worked on
  readonly #later = new DelayQueue(); // in monotonic time
  readonly #retries = new Set<string>(); // of those that are due later, which failed before
  readonly #turns = new RetryTurns(); // of those whose time has come
  readonly #backoffs = new Map<string, Backoff>(); // key that failed -> how long it waits next
  readonly #meter: QueueMetrics;
  #wake: () => void = () => {};
  /** Monotonic: when it wakes by itself. */
  #restsUntil = Number.POSITIVE_INFINITY;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    const { name, clock, metrics = noopMetrics } = options;
    this.#meter = new QueueMetrics({
      name,
      clock,
      metrics,
      later: () => this.#later.size + this.#turns.size,
    });
  }

  /** Keys that wait, now or for later, or are worked on. */
  get size(): number {
    const later = [...this.#later.keys(), ...this.#turns.keys()];
    return new Set([...this.#waiting, ...this.#working, ...this.#again, ...later]).size;
  }

  /** To be looked at as soon as possible. */
  add(key: string): void {
    this.#later.delete(key);
    this.#retries.delete(key);
    this.#turns.leave(key);
    this.#meter.due(key);
    if (this.#working.has(key)) this.#again.add(key);
    else this.#waiting.add(key);
    this.#wake();
  }

  /** To be looked at after `ms`, unless it is due before. */
  addAfter(key: string, ms: number): void {
    const due = this.#options.clock.monotonic() + ms;
    if (this.#waiting.has(key) || this.#later.of(key) <= due) return;
    this.#later.set(key, due);
    this.#retries.delete(key);
    if (due < this.#restsUntil) this.#wake();
  }

  /** Works until `signal` aborts, and then waits for what is worked on. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, concurrency = 4 } = this.#options;
    const running = new Set<Promise<void>>();
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    for (let looks = 0; !signal.aborted; ) {
      this.#takeDue();
      while (running.size < concurrency && looks < LOOKS_IN_A_TURN) {
        const key = this.#next();
        if (key === undefined) break;
        const work = this.#handle(key, signal).finally(() => {
          running.delete(work);
          this.#wake(); // not before there is room for another: it would rest beside a key that waits
        });
        running.add(work);
        looks++;
      }
      if (looks < LOOKS_IN_A_TURN) {
        await this.#rest(signal);
      } else {
        looks = 0;
        await clock.sleep(0, signal);
      }
    }
    await Promise.all(running);
  }

  #takeDue(): void {
    const now = this.#options.clock.monotonic();
    for (let key = this.#later.take(now); key !== undefined; key = this.#later.take(now)) {
      if (this.#retries.delete(key)) this.#turns.enter(key);
      else this.add(key);
    }
    for (let key = this.#turns.take(now); key !== undefined; key = this.#turns.take(now)) this.add(key);
  }

  /** The key that waits longest. One iterator goes on: a new one would pass over all that were taken before. */
  #next(): string | undefined {
    const head = this.#heads.next();
    if (head.done !== true) return head.value;
    this.#heads = this.#waiting.values();
    return this.#heads.next().value;
  }

  /** Until something is added, ends or becomes due. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    if (signal.aborted) return;
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    this.#wake = wake;
    this.#restsUntil = Math.min(this.#later.soonest(), this.#turns.soonest());
    if (this.#restsUntil < Number.POSITIVE_INFINITY) {
      const over = new AbortController();
      await Promise.race([woken, clock.sleep(this.#restsUntil - clock.monotonic(), over.signal)]);
      over.abort(WOKEN);
    } else {
      await woken;
    }
    this.#wake = () => {};
  }

  async #handle(key: string, signal: AbortSignal): Promise<void> {
    this.#waiting.delete(key);
    this.#working.add(key);
    this.#meter.begun(key);
    const outcome = await this.#outcome(key, signal);
    this.#working.delete(key);
    this.#meter.ended(key, outcome.kind);
    this.#settle(key, outcome);
    if (this.#again.delete(key)) this.add(key);
  }

  async #outcome(key: string, signal: AbortSignal): Promise<Outcome> {
    try {
      return await this.#options.work(key, signal);
    } catch (cause) {
      return { kind: "retry", cause };
    }
  }

  #settle(key: string, outcome: Outcome): void {
    const { log, name } = this.#options;
    if (isSuccess(outcome)) this.#backoffs.delete(key);
    if (outcome.kind === "again") this.addAfter(key, outcome.afterMs);
    if (outcome.kind === "rejected")
      log.info("work was rejected", { queue: name, key, error: outcome.reason });
    if (outcome.kind !== "retry") return;
    const ms = this.#retry(key);
    log.warn("work failed and is tried again", { queue: name, key, error: outcome.cause, ms });
  }

  /** After the time that it waits for itself, it has its turn among all that failed. */
  #retry(key: string): number {
    const { clock, random } = this.#options;
    const backoff = this.#backoffs.get(key) ?? new Backoff(RETRY, random);
    this.#backoffs.set(key, backoff);
    const ms = backoff.next();
    const isSooner = this.#later.of(key) > clock.monotonic() + ms;
    this.addAfter(key, ms);
    if (isSooner) this.#retries.add(key);
    return ms;
  }
}

/** What failed before waits as long as ever, should it fail again: work in several parts fails in its last one. */
function isSuccess(outcome: Outcome): boolean {
  return outcome.kind === "again" ? outcome.unfinished !== true : outcome.kind !== "retry";
}
