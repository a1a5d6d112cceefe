// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { type Pool, type PoolRecord, parseStoredPool } from "../../../allocator/pool/pool.ts";
import type { JournalContents } from "../journal/journal.ts";
import type { BlockSource } from "./block-source.ts";

/**
 * In the journal beside the pools: these were all that there were. No pool has its name, and an earlier version reads none from it, and
 * may take some of the others away.
 */
const LISTED = "";
const listOf = (names: readonly string[]): PoolRecord => ({
  name: LISTED,
  spec: { ranges: [], networks: names },
});

/** Undefined where they cannot be read. */
function namesIn(spec: unknown): readonly string[] | undefined {
  const names = typeof spec === "object" && spec !== null && "networks" in spec ? spec.networks : undefined;
  return Array.isArray(names) && names.every((name) => typeof name === "string") ? names : undefined;
}

/** The pools that the watch tells of, and before it has told of all those that the journal has. */
export class KnownPools {
  readonly #source: BlockSource;
  readonly #journalled = new Map<string, Pool>(); // name -> what the journal has of it
  /** Names of all that there were when they were listed last; undefined: they never were. */
  #listed: readonly string[] | undefined;

  constructor(source: BlockSource, stored: JournalContents["pools"]) {
    this.#source = source;
    this.#note(stored);
  }

  /** All that are known; without an API server those that have blocks. */
  all(): readonly Pool[] {
    return this.everything().filter(
      ({ name, spec }) => spec.blockSize !== undefined || this.#source.pool(name) !== undefined,
    );
  }

  /** All that are known; without an API server those that there were when it was heard last. */
  everything(): readonly Pool[] {
    const known = new Map([...this.#source.pools()].map((pool) => [pool.name, pool]));
    if (!this.#source.isSynced)
      for (const [name, pool] of this.#journalled) if (!known.has(name)) known.set(name, pool);
    return [...known.values()];
  }

  /** Whether `everything` is: they were listed, by this process or by one before it. */
  get areAllKnown(): boolean {
    return this.#source.isSynced || this.#listed?.every((name) => this.#journalled.has(name)) === true;
  }

  /** As it is known now; as the journal has it while that is not known yet. */
  get(name: string): Pool | undefined {
    return this.#source.pool(name) ?? (this.#source.isSynced ? undefined : this.#journalled.get(name));
  }

  /** What the journal is to be told. */
  change(): {
    readonly pools: readonly PoolRecord[];
    readonly poolsGone: readonly string[];
  } {
    const there = [...this.#source.pools()];
    const news = there.filter((pool) => this.#isNews(pool)).map(({ name, spec }) => ({ name, spec }));
    if (!this.#source.isSynced) return { pools: news, poolsGone: [] };
    const names = new Set(there.map(({ name }) => name));
    const gone = [...this.#journalled.keys()].filter((name) => !names.has(name));
    const isListed = this.#listed !== undefined && isDeepStrictEqual(new Set(this.#listed), names);
    return { pools: isListed ? news : [...news, listOf([...names])], poolsGone: gone };
  }

  /** The journal has it. */
  written({ pools, poolsGone }: ReturnType<KnownPools["change"]>): void {
    this.#note(pools);
    for (const name of poolsGone) this.#journalled.delete(name);
  }

  #note(records: JournalContents["pools"]): void {
    for (const one of records) {
      if (one.name === LISTED) this.#listed = namesIn(one.spec);
      const pool = parseStoredPool(one);
      if (!isRefusal(pool)) this.#journalled.set(pool.name, pool);
    }
  }

  #isNews({ name, spec }: Pool): boolean {
    const known = this.#journalled.get(name)?.spec;
    return known !== spec && JSON.stringify(known) !== JSON.stringify(spec);
  }
}
