// SPDX-License-Identifier: Apache-2.0

import { BerthError, type FaultCode, isStoreFault, messageOf } from "../base/errors.ts";
import type { LogFields } from "../base/ports.ts";
import type { Context } from "../cache/context.ts";

/** A store that is away answers so, and so does one that is there, of one record that it cannot write. */
const OF_ONE_PERHAPS: ReadonlySet<FaultCode> = new Set(["STORE_UNAVAILABLE", "TIMED_OUT"]);

/** Less than from one pass to the next: one fault alone may have been any. */
const FIRST_REST_MS = 5_000;
/** With the pass that comes after it, as long as what is due may take (invariant 6). */
const LONGEST_REST_MS = 50_000;

interface Rest {
  readonly ms: number;
  /** Monotonic, ms. */
  readonly until: number;
}

/**
 * Whose the faults of a pass are. What is wrong with one record says nothing about the next one, whoever made it: a
 * record that has become too large, or whose namespace has a webhook that is away, is a 5xx of the API server like an
 * outage. So the store is asked for something that no owner of a claim can spoil.
 */
export class PassFaults {
  readonly #context: Pick<Context, "store" | "view" | "log" | "clock">;
  readonly #rests = new Map<string, Rest>(); // claim or address -> of one that met a fault
  #probe: Promise<boolean> | undefined;

  constructor(context: Pick<Context, "store" | "view" | "log" | "clock">) {
    this.#context = context;
  }

  /** Whether a record is left alone for the moment: where nothing can be written, each would be tried in each pass. */
  isResting(key: string): boolean {
    return this.#context.clock.monotonic() < (this.#rests.get(key)?.until ?? 0);
  }

  /** Nothing was wrong with it. */
  passed(key: string): void {
    this.#rests.delete(key);
  }

  /** Forgets records that nobody came back to. */
  forgetOld(): void {
    const before = this.#context.clock.monotonic() - 2 * LONGEST_REST_MS;
    for (const [key, { until }] of this.#rests) if (until < before) this.#rests.delete(key);
  }

  /** Logs a fault of one record; throws one of the store itself, which ends the pass. */
  async passOver(message: string, about: { key: string; fields: LogFields }, error: unknown): Promise<void> {
    if (isStoreFault(error) && !(await this.#isOfOne(error))) throw error;
    const ms = Math.min(LONGEST_REST_MS, 2 * (this.#rests.get(about.key)?.ms ?? FIRST_REST_MS / 2));
    this.#rests.set(about.key, { ms, until: this.#context.clock.monotonic() + ms });
    this.#context.log.error(message, { ...about.fields, error: messageOf(error) });
  }

  async #isOfOne(error: unknown): Promise<boolean> {
    if (!(error instanceof BerthError) || !OF_ONE_PERHAPS.has(error.code)) return false;
    this.#probe ??= this.#answers().finally(() => {
      this.#probe = undefined;
    });
    return await this.#probe;
  }

  /** Whether the store answers at all: to a pool, which is nobody's but the administrator's. */
  async #answers(): Promise<boolean> {
    const { store, view } = this.#context;
    try {
      await store.get("pool", view.pools()[0]?.name ?? "none");
      return true;
    } catch (error) {
      return !isStoreFault(error);
    }
  }
}
