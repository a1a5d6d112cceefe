// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../../allocator/base/errors.ts";
import { type Pool, type PoolRecord, parseStoredPool } from "../../../allocator/pool/pool.ts";
import type { JournalContents } from "../journal/journal.ts";
import type { BlockSource } from "./block-source.ts";

/** The pools that the watch tells of, and before it has told of all those that the journal has. */
export class KnownPools {
  readonly #source: BlockSource;
  readonly #journalled = new Map<string, Pool>(); // name -> what the journal has of it

  constructor(source: BlockSource, stored: JournalContents["pools"]) {
    this.#source = source;
    for (const one of stored) {
      const pool = parseStoredPool(one);
      if (!isRefusal(pool)) this.#journalled.set(pool.name, pool);
    }
  }

  /** All that are known; without an API server those that have blocks. */
  all(): readonly Pool[] {
    const known = new Map([...this.#source.pools()].map((pool) => [pool.name, pool]));
    if (!this.#source.isSynced)
      for (const [name, pool] of this.#journalled) if (!known.has(name)) known.set(name, pool);
    return [...known.values()];
  }

  /** As it is known now; as the journal has it while that is not known yet. */
  get(name: string): Pool | undefined {
    return this.#source.pool(name) ?? (this.#source.isSynced ? undefined : this.#journalled.get(name));
  }

  /** What the journal is to be told; of pools that are there only if this node has blocks. */
  change(hasBlocks: boolean): {
    readonly pools: readonly PoolRecord[];
    readonly poolsGone: readonly string[];
  } {
    const cut = [...this.#source.pools()].filter(({ spec }) => spec.blockSize !== undefined);
    const news = hasBlocks ? cut.filter((pool) => this.#isNews(pool)) : [];
    const there = new Set(cut.map(({ name }) => name));
    const gone = this.#source.isSynced ? [...this.#journalled.keys()].filter((name) => !there.has(name)) : [];
    return { pools: news.map(({ name, spec }) => ({ name, spec })), poolsGone: gone };
  }

  /** The journal has it. */
  written({ pools, poolsGone }: ReturnType<KnownPools["change"]>): void {
    for (const one of pools) {
      const pool = parseStoredPool(one);
      if (!isRefusal(pool)) this.#journalled.set(pool.name, pool);
    }
    for (const name of poolsGone) this.#journalled.delete(name);
  }

  #isNews({ name, spec }: Pool): boolean {
    const known = this.#journalled.get(name)?.spec;
    return known !== spec && JSON.stringify(known) !== JSON.stringify(spec);
  }
}
