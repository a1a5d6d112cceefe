// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../../allocator/base/errors.ts";
import { type Block, isReturned } from "../../../allocator/model/block.ts";
import { blockLength } from "../../../allocator/pool/blocks.ts";
import { type Pool, parseStoredPool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { PodRef } from "../claims/claim-source.ts";
import type { Journal, JournalContents } from "../journal/journal.ts";
import type { BlockChange, JournalBlock, OwnedBlock } from "../journal/owned-blocks.ts";
import type { BlockSource, PodFacts } from "./block-source.ts";
import type { BlockState, NodeBlocks } from "./node-blocks.ts";

export interface BlockFollowerOptions {
  readonly source: BlockSource;
  readonly blocks: NodeBlocks;
  readonly journal: Pick<Journal, "write">;
  /** What the journal had when this process began. */
  readonly contents: Pick<JournalContents, "blocks" | "pools">;
  readonly bootId: string;
}

/**
 * Keeps the node's blocks in memory as their records say, and in the journal for the next process.
 *
 * | a block                                                  | is given from                                      |
 * |----------------------------------------------------------|----------------------------------------------------|
 * | its record names this node, is granted, does not cool    | yes, unless the journal says that it is given back |
 * | the record is not known yet, the journal is of this boot | the same                                           |
 * | the record is not known yet, the journal is of another   | not before the record is seen                      |
 * | all was listed, and the record is not there              | no                                                 |
 */
export class BlockFollower {
  readonly #options: BlockFollowerOptions;
  readonly #journalled = new Map<string, JournalBlock>(); // CIDR and UID -> what the journal has of it
  readonly #pools = new Map<string, Pool>(); // name -> what the journal has of it
  readonly #givingUp = new Set<string>(); // CIDR and UID of those that are about to be journalled as given back
  readonly #waiting = new Set<() => void>(); // ADDs that wait for news
  #writing: Promise<void> = Promise.resolve();

  constructor(options: BlockFollowerOptions) {
    this.#options = options;
    for (const block of options.contents.blocks) this.#journalled.set(idOf(block), block);
    for (const stored of options.contents.pools) {
      const pool = parseStoredPool(stored);
      if (!isRefusal(pool)) this.#pools.set(pool.name, pool);
    }
    this.follow();
  }

  /** All that are known; without an API server those of this node's blocks. */
  pools(): readonly Pool[] {
    const { source } = this.#options;
    const known = new Map([...source.pools()].map((pool) => [pool.name, pool]));
    if (!source.isSynced) for (const [name, pool] of this.#pools) if (!known.has(name)) known.set(name, pool);
    return [...known.values()];
  }

  get isSynced(): boolean {
    return this.#options.source.isSynced;
  }

  factsOf(pod: PodRef): PodFacts {
    return this.#options.source.factsOf(pod);
  }

  /** As it is known now; as the journal has it while that is not known yet. */
  pool(name: string): Pool | undefined {
    const { source } = this.#options;
    return source.pool(name) ?? (source.isSynced ? undefined : this.#pools.get(name));
  }

  /** When the journal was told that the block is given back; undefined: it was not. */
  returningSince(block: Pick<OwnedBlock, "cidr" | "uid">): number | undefined {
    const at = this.#journalled.get(idOf(block))?.returningAt ?? 0;
    return at > 0 ? at : undefined;
  }

  /** Whether pods that ask for nothing are served out of blocks of the pool; undefined: it is not known. */
  hasBlocks(name: string): boolean | undefined {
    const pool = this.pool(name);
    if (pool === undefined) return this.#options.source.isSynced ? false : undefined;
    return pool.families.some((family) => blockLength(pool, family) !== undefined);
  }

  /** There may be news of blocks soon: not everything is known, or this node has none of the pool yet. */
  isExpecting(pool: string): boolean {
    const { source, blocks } = this.#options;
    return !source.isSynced || !blocks.isGivingFrom(pool);
  }

  /** An ADD has found no free address: whether there are more blocks now, where they can be asked for. */
  async more(): Promise<boolean> {
    return (await this.#options.source.more?.()) ?? false;
  }

  /** Resolves when something of the blocks was heard, or when the signal aborts. */
  async heard(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.#waiting.add(wake);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    signal.removeEventListener("abort", wake);
    this.#waiting.delete(wake);
  }

  /** Something that an ADD may wait for has become known. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Brings memory in line with the records, at once. To be called whenever they have changed. */
  follow(): void {
    const { source, blocks } = this.#options;
    const seen = new Map([...source.blocks()].map((stored) => [stored.key, stored]));
    for (const stored of seen.values()) {
      if (isGiven(stored.record))
        blocks.put(ownedOf(stored), isReturned(stored.record) ? "returning" : this.#stateOf(ownedOf(stored)));
      else blocks.remove(stored.key);
    }
    if (!source.isSynced) this.#trustJournal(seen);
    else
      for (const { space } of [...blocks.all()])
        if (!seen.has(space.block.cidr)) blocks.remove(space.block.cidr);
    this.wake();
  }

  /** Brings the journal in line with the records. What this rejects with leaves it as it was. */
  record(): Promise<void> {
    const write = this.#writing.then(() => this.#record());
    this.#writing = write.catch(() => undefined);
    return write;
  }

  /**
   * Puts down that the block is given back, once it is empty: from here on nothing of it is given, whatever becomes of the
   * word. False: an address of it is in use, or it is not this node's.
   */
  async giveUp(cidr: string, now: number): Promise<boolean> {
    const { blocks, bootId } = this.#options;
    const block = blocks.get(cidr)?.space.block;
    if (block === undefined || !blocks.stopGiving(cidr)) return false;
    this.#givingUp.add(idOf(block));
    const write = this.#writing.then(() => this.#write({ put: [{ ...block, bootId, returningAt: now }] }));
    this.#writing = write.catch(() => undefined);
    try {
      await write;
      return true;
    } finally {
      this.#givingUp.delete(idOf(block));
      this.follow(); // if it could not be put down nothing was said, and it may be given from again
    }
  }

  #trustJournal(seen: ReadonlyMap<string, unknown>): void {
    const { blocks, bootId } = this.#options;
    for (const block of this.#journalled.values()) {
      if (seen.has(block.cidr) || block.bootId !== bootId) continue;
      blocks.put(block, this.#stateOf(block));
    }
  }

  #stateOf(block: OwnedBlock): BlockState {
    const id = idOf(block);
    const isGivenBack = this.#givingUp.has(id) || this.returningSince(block) !== undefined;
    return isGivenBack ? "returning" : "giving";
  }

  async #record(): Promise<void> {
    const { source } = this.#options;
    const stored = [...source.blocks()].filter(({ record }) => isGiven(record));
    const put = stored.flatMap((one) => this.#rowFor(one) ?? []);
    const there = new Set([...source.blocks()].map((one) => idOf(ownedOf(one))));
    const gone = source.isSynced
      ? [...this.#journalled].filter(([id]) => !there.has(id)).map(([, row]) => row)
      : [];
    const names = new Set(stored.map(({ record }) => record.pool));
    const pools = [...names].flatMap((name) => source.pool(name) ?? []).filter((pool) => this.#isNews(pool));
    if (put.length + gone.length + pools.length === 0) return;
    await this.#write({ put, gone, pools: pools.map(({ name, spec }) => ({ name, spec })) });
    for (const pool of pools) this.#pools.set(pool.name, pool);
  }

  /** Undefined: the journal says so already. */
  #rowFor(stored: Stored<"block">): JournalBlock | undefined {
    const block = ownedOf(stored);
    const row = this.#journalled.get(idOf(block));
    const { bootId } = this.#options;
    if (row?.bootId === bootId && row.holes.join() === block.holes.join()) return undefined;
    return { ...block, bootId, returningAt: row?.returningAt ?? 0 };
  }

  #isNews({ name, spec }: Pool): boolean {
    const known = this.#pools.get(name)?.spec;
    return known !== spec && JSON.stringify(known) !== JSON.stringify(spec);
  }

  async #write(change: BlockChange): Promise<void> {
    await this.#options.journal.write({ blocks: change });
    for (const row of change.put ?? []) this.#journalled.set(idOf(row), row);
    for (const row of change.gone ?? []) this.#journalled.delete(idOf(row));
  }
}

/** By its record: its node may give what is no hole. */
function isGiven({ granted, releasedAt }: Block): boolean {
  return granted === true && releasedAt === undefined;
}

function ownedOf({ key, uid, record }: Stored<"block">): OwnedBlock {
  return { cidr: key, uid, pool: record.pool, holes: record.holes };
}

function idOf({ cidr, uid }: Pick<OwnedBlock, "cidr" | "uid">): string {
  return `${cidr}\0${uid}`;
}
