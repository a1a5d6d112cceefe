// SPDX-License-Identifier: Apache-2.0
import type { Clock, Logger, Random } from "../allocator/ports.ts";
import { Backoff } from "./backoff.ts";

/** How one look at a key ended. */
export type Outcome =
  | { readonly kind: "done" }
  /** Waiting for a moment that is known. */
  | { readonly kind: "again"; readonly afterMs: number }
  /** Could not, this time: again later, and later still each time. */
  | { readonly kind: "retry"; readonly cause: unknown }
  /** A person must act; nothing to do until something changes. */
  | { readonly kind: "rejected"; readonly reason: string }
  /** Something was freed that others may be waiting for. */
  | { readonly kind: "resync"; readonly reason: string };

export const DONE: Outcome = { kind: "done" };

export interface WorkQueueOptions {
  /** For log lines. */
  readonly name: string;
  /** Brings the world of one key into order, from what is there now. What it throws counts as `retry`. */
  readonly work: (key: string, signal: AbortSignal) => Promise<Outcome>;
  readonly clock: Clock;
  readonly random: Pick<Random, "fraction">;
  readonly log: Logger;
  /** Keys at a time, default 4. */
  readonly concurrency?: number;
  /** After `resync`. */
  readonly onResync?: (reason: string) => void;
}

/** client-go's first wait; a minute at most, since what is in order after a failure should not wait for 1000 s. */
const RETRY = { base: 5, longest: 60_000 };
/** Retries of all keys together, as client-go: what fails for thousands of keys must not become a flood. */
const RETRIES_PER_SECOND = 10;
const RETRY_BURST = 100;

/**
 * A queue of keys. A key that waits is not added twice; one that is worked on and added again is worked on once more
 * afterwards, never twice at a time.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Set<string>();
  readonly #working = new Set<string>();
  readonly #again = new Set<string>(); // added while they were worked on
  readonly #later = new Map<string, number>(); // key -> monotonic time at which it is due
  readonly #backoffs = new Map<string, Backoff>(); // key that failed -> how long it waits next
  #wake: () => void = () => {};
  /** Monotonic time at which the next retry is free, the burst aside. */
  #retriesFreeAt = Number.NEGATIVE_INFINITY;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Keys that wait, now or for later, or are worked on. */
  get size(): number {
    return new Set([...this.#waiting, ...this.#working, ...this.#again, ...this.#later.keys()]).size;
  }

  /** To be looked at as soon as possible. */
  add(key: string): void {
    this.#later.delete(key);
    if (this.#working.has(key)) this.#again.add(key);
    else this.#waiting.add(key);
    this.#wake();
  }

  /** To be looked at after `ms`, unless it is due before. */
  addAfter(key: string, ms: number): void {
    const due = this.#options.clock.monotonic() + ms;
    if (this.#waiting.has(key) || (this.#later.get(key) ?? Number.POSITIVE_INFINITY) <= due) return;
    this.#later.set(key, due);
    this.#wake();
  }

  /** Works until `signal` aborts, and then waits for what is worked on. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const running = new Set<Promise<void>>();
    while (!signal.aborted) {
      this.#takeDue();
      while (running.size < (this.#options.concurrency ?? 4)) {
        const [key] = this.#waiting;
        if (key === undefined) break;
        const work = this.#handle(key, signal).finally(() => running.delete(work));
        running.add(work);
      }
      await this.#rest(signal);
    }
    await Promise.all(running);
  }

  #takeDue(): void {
    const now = this.#options.clock.monotonic();
    for (const [key, due] of this.#later) if (due <= now) this.add(key);
  }

  /** Until something is added, ends or becomes due. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const due = Math.min(...this.#later.values());
    const either = AbortSignal.any([signal, woken.signal]);
    // two hours stand for ever: something that is added wakes it
    await clock.sleep(Math.min(due - clock.monotonic(), 7_200_000), either);
    this.#wake = () => {};
  }

  async #handle(key: string, signal: AbortSignal): Promise<void> {
    this.#waiting.delete(key);
    this.#working.add(key);
    const outcome = await this.#outcome(key, signal);
    this.#working.delete(key);
    this.#settle(key, outcome);
    if (this.#again.delete(key)) this.add(key);
    this.#wake();
  }

  async #outcome(key: string, signal: AbortSignal): Promise<Outcome> {
    try {
      return await this.#options.work(key, signal);
    } catch (cause) {
      return { kind: "retry", cause };
    }
  }

  #settle(key: string, outcome: Outcome): void {
    const { log, name, onResync } = this.#options;
    if (outcome.kind !== "retry") this.#backoffs.delete(key);
    if (outcome.kind === "again") this.addAfter(key, outcome.afterMs);
    if (outcome.kind === "rejected")
      log.info("work was rejected", { queue: name, key, error: outcome.reason });
    if (outcome.kind === "resync") onResync?.(outcome.reason);
    if (outcome.kind !== "retry") return;
    const ms = this.#retryAfter(key);
    log.warn("work failed and is tried again", { queue: name, key, error: outcome.cause, ms });
    this.addAfter(key, ms);
  }

  /** The longer of what the key waits for and what all keys share. */
  #retryAfter(key: string): number {
    const { clock, random } = this.#options;
    const backoff = this.#backoffs.get(key) ?? new Backoff(RETRY, random);
    this.#backoffs.set(key, backoff);
    const now = clock.monotonic();
    const gap = 1000 / RETRIES_PER_SECOND;
    this.#retriesFreeAt = Math.max(this.#retriesFreeAt, now - RETRY_BURST * gap) + gap;
    return Math.max(backoff.next(), this.#retriesFreeAt - now);
  }
}
