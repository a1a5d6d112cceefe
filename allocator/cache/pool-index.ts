// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../base/errors.ts";
import type { Logger } from "../base/ports.ts";
import { type Pool, type PoolRecord, parseStoredPool } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";

/** The pools as they are stored, and those of them that can be used, in the order in which they are asked. */
export class PoolIndex {
  readonly #log: Logger;
  readonly records = new Map<string, Stored<"pool">>(); // pool name -> record
  readonly usable = new Map<string, Pool>(); // pool name -> pool
  #ordered: readonly Pool[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** By priority, then by name. */
  get ordered(): readonly Pool[] {
    return this.#ordered;
  }

  /** Whether its spec is another one: the status is written often, and what is made of a spec is dear. */
  put(stored: Stored<"pool">): boolean {
    const before = this.records.get(stored.key);
    this.records.set(stored.key, stored);
    if (isDeepStrictEqual(before?.record, stored.record)) return false;
    const pool = parseStoredPool(stored.record satisfies PoolRecord);
    if (isRefusal(pool)) {
      // It passed the validator once; an unreadable pool hands out nothing rather than something wrong.
      this.#log.error("pool cannot be used", { pool: stored.key, code: pool.code, error: pool.message });
      this.usable.delete(stored.key);
    } else {
      this.usable.set(stored.key, pool);
    }
    this.#order();
    return true;
  }

  drop(name: string): void {
    this.records.delete(name);
    this.usable.delete(name);
    this.#order();
  }

  #order(): void {
    this.#ordered = [...this.usable.values()].sort(
      (a, b) => b.priority - a.priority || (a.name < b.name ? -1 : 1),
    );
  }
}
