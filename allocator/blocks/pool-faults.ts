// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../base/ports.ts";
import { Rests } from "../base/rests.ts";

/** Why blocks, or CIDRs of nodes, of pools could not be given in the last pass, and which are not tried in this one. */
export class PoolFaults {
  readonly #rests: Rests;
  #before: ReadonlyMap<string, string> = new Map();
  #words = new Map<string, string>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#rests = new Rests(clock);
  }

  /** By the name of the pool. */
  get words(): ReadonlyMap<string, string> {
    return this.#words;
  }

  beginPass(): void {
    this.#before = this.#words;
    this.#words = new Map();
    this.#rests.forgetOld();
  }

  /** Whether the pool met a fault a moment ago: it stands as it was told. */
  isResting(pool: string): boolean {
    const words = this.#before.get(pool);
    if (words === undefined || !this.#rests.isResting(pool)) return false;
    this.#words.set(pool, words);
    return true;
  }

  /** The words stay: they may name another block each time. */
  met(pool: string, words: string): void {
    this.#words.set(pool, this.#before.get(pool) ?? words);
  }

  /** All of the pool was tried. */
  tried(pool: string): void {
    if (this.#words.has(pool)) this.#rests.begin(pool);
    else this.#rests.end(pool);
  }
}
