// SPDX-License-Identifier: Apache-2.0

import { BerthError, type FaultCode, isStoreFault, messageOf } from "../base/errors.ts";
import type { LogFields } from "../base/ports.ts";
import { Rests } from "../base/rests.ts";
import type { Context } from "../cache/context.ts";

/** A store that is away answers so, and so does one that is there, of one record that it cannot write. */
const OF_ONE_PERHAPS: ReadonlySet<FaultCode> = new Set(["STORE_UNAVAILABLE", "TIMED_OUT"]);

/**
 * Whose the faults of a pass are. What is wrong with one record says nothing about the next one, whoever made it: a
 * record that has become too large, or whose namespace has a webhook that is away, is a 5xx of the API server like an
 * outage. So the store is asked for something that no owner of a claim can spoil.
 */
export class PassFaults {
  readonly #context: Pick<Context, "store" | "view" | "log" | "clock">;
  /** Of claims and addresses. */
  readonly #rests: Rests;
  #probe: Promise<boolean> | undefined;

  constructor(context: Pick<Context, "store" | "view" | "log" | "clock">) {
    this.#context = context;
    this.#rests = new Rests(context.clock);
  }

  /** Whether a record is left alone for the moment: where nothing can be written, each would be tried in each pass. */
  isResting(key: string): boolean {
    return this.#rests.isResting(key);
  }

  /** Nothing was wrong with it. */
  passed(key: string): void {
    this.#rests.end(key);
  }

  /** Forgets records that nobody came back to. */
  forgetOld(): void {
    this.#rests.forgetOld();
  }

  /** Logs a fault of one record; throws one of the store itself, which ends the pass. */
  async passOver(message: string, about: { key: string; fields: LogFields }, error: unknown): Promise<void> {
    if (isStoreFault(error) && !(await this.#isOfOne(error))) throw error;
    this.#rests.begin(about.key);
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
