// SPDX-License-Identifier: Apache-2.0
import { setImmediate as turn } from "node:timers/promises";
import type { Clock } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";

interface Sleeper {
  readonly ms: number;
  readonly until: number;
  readonly wake: AbortController;
}

/** Loops that a leap wakes have ended their round by then, or never will. */
const PATIENCE_MS = 5_000;

/**
 * The clock of this host, which can leap ahead: certificates and clients see a time that passes, and half an hour
 * takes no time.
 */
export class LeapingClock implements Clock {
  readonly #host = createClock();
  readonly #sleepers = new Set<Sleeper>();
  readonly #begun = new Map<number, number>(); // length of a sleep in ms -> how many began
  #ahead = 0;
  #stoppedAt: number | undefined; // the host's monotonic time

  now(): number {
    return this.#host.now() + this.#ahead - this.#stoodStill();
  }

  monotonic(): number {
    return this.#host.monotonic() + this.#ahead - this.#stoodStill();
  }

  /** Until `start` only `leap` and `skip` move it: what is done meanwhile takes no time, however slow the machine. */
  stop(): void {
    this.#stoppedAt ??= this.#host.monotonic();
  }

  start(): void {
    this.#ahead -= this.#stoodStill();
    this.#stoppedAt = undefined;
  }

  #stoodStill(): number {
    return this.#stoppedAt === undefined ? 0 : this.#host.monotonic() - this.#stoppedAt;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const length = Math.round(ms);
    const sleeper = { ms: length, until: this.monotonic() + ms, wake: new AbortController() };
    this.#begun.set(length, (this.#begun.get(length) ?? 0) + 1);
    const abort = () => sleeper.wake.abort();
    if (signal?.aborted === true) return;
    signal?.addEventListener("abort", abort, { once: true });
    this.#sleepers.add(sleeper);
    await this.#host.sleep(ms, sleeper.wake.signal);
    this.#sleepers.delete(sleeper);
    signal?.removeEventListener("abort", abort);
  }

  /**
   * Moves on, in steps of at most `stepMs`, and after each waits until whoever was woken sleeps as long again: the
   * rounds of periodic work are over. Not to be called while a request is under way, whose time limits it would end.
   */
  async leap(ms: number, stepMs = 10_000): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) await this.#step(Math.min(left, stepMs));
  }

  /** Moves on and waits for nobody: for a time limit that is to end something which is under way. */
  skip(ms: number): void {
    this.#ahead += ms;
    for (const { wake } of this.#due()) wake.abort();
  }

  #due(): readonly Sleeper[] {
    const now = this.monotonic();
    return [...this.#sleepers].filter(({ until }) => until <= now);
  }

  async #step(ms: number): Promise<void> {
    this.#ahead += ms;
    const due = this.#due();
    const expected = new Map<number, number>(); // length of a sleep -> how many must have begun
    for (const { ms: length } of due) {
      expected.set(length, (expected.get(length) ?? this.#begun.get(length) ?? 0) + 1);
    }
    for (const { wake } of due) wake.abort();
    const patience = this.#host.now() + PATIENCE_MS;
    while ([...expected].some(([length, count]) => (this.#begun.get(length) ?? 0) < count)) {
      if (this.#host.now() > patience) return;
      await turn();
    }
  }
}
