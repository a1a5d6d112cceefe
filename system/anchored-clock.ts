// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../allocator/base/ports.ts";

/** The API server's clock, or another replica of it, was set: carried on from there. */
const SET_MS = 5_000;

/**
 * A wall clock that does not jump: the time at which the process began, carried on by the monotonic clock. Told of the
 * API server's time, it is that from then on, so that all replicas have one clock whatever those of their hosts say.
 */
export class AnchoredClock implements Clock {
  readonly #base: Clock;
  #offset: number; // wall clock minus monotonic clock
  #isServers = false;
  readonly alarm?: NonNullable<Clock["alarm"]>;

  constructor(base: Clock) {
    this.#base = base;
    if (base.alarm !== undefined) this.alarm = base.alarm.bind(base);
    this.#offset = base.now() - base.monotonic();
  }

  now(): number {
    return Math.floor(this.#base.monotonic() + this.#offset);
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#base.sleep(ms, signal);
  }

  /** An answer that has just come says when it was sent, in whole seconds rounded down: it is that late at least. */
  observe(serverMs: number): void {
    const least = serverMs - this.#base.monotonic();
    const isSet = !this.#isServers || Math.abs(least - this.#offset) > SET_MS;
    this.#offset = isSet ? least : Math.max(this.#offset, least);
    this.#isServers = true;
  }
}
