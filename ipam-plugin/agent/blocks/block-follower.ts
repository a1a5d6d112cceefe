// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../../allocator/ip/address.ts";
import { type Block, isReturned } from "../../../allocator/model/block.ts";
import { isInNetwork } from "../../../allocator/pool/address-space.ts";
import { blockLength } from "../../../allocator/pool/blocks.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { PodRef } from "../claims/claim-source.ts";
import type { Journal, JournalContents } from "../journal/journal.ts";
import type { BlockChange, OwnedBlock } from "../journal/owned-blocks.ts";
import type { BlockSource, PodFacts, PoolOwner } from "./block-source.ts";
import { JournalledBlocks } from "./journalled-blocks.ts";
import { KnownPools } from "./known-pools.ts";
import { News } from "./news.ts";
import type { BlockState, NodeBlocks } from "./node-blocks.ts";
import { ProvenBlocks } from "./proven-blocks.ts";
import { idOf, ownedOf, ReturnedAddresses, returnedIn } from "./returned-addresses.ts";

interface BlockFollowerOptions {
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
 * | its record names this node, is granted, does not cool    | when it is proven, and not given back by journal   |
 * | the record is not known yet, the journal is of this boot | the same                                           |
 * | the record is not known yet, the journal is of another   | not before the record is seen                      |
 * | all was listed, and the record is not there              | no                                                 |
 */
export class BlockFollower {
  readonly #options: BlockFollowerOptions;
  readonly #journalled: JournalledBlocks;
  readonly #proven: ProvenBlocks;
  readonly #pools: KnownPools;
  readonly #givingUp = new Set<string>(); // CIDR and UID of those that are about to be journalled as given back
  readonly #returned = new ReturnedAddresses();
  readonly #news = new News();
  #writing: Promise<void> = Promise.resolve();

  constructor(options: BlockFollowerOptions) {
    this.#options = options;
    this.#journalled = new JournalledBlocks(options.contents.blocks, options.bootId);
    this.#proven = new ProvenBlocks(options.source, this.#journalled);
    this.#pools = new KnownPools(options.source, options.contents.pools);
    this.follow();
  }

  /** All that are known; without an API server those that have blocks. */
  pools(): readonly Pool[] {
    return this.#pools.all();
  }

  /** Whether they have blocks or not; without an API server those that there were when it was heard last. */
  everyPool(): readonly Pool[] {
    return this.#pools.everything();
  }

  /** Whether `everyPool` gives all that there are, so far as this node has ever heard. */
  get knowsEveryPool(): boolean {
    return this.#pools.areAllKnown;
  }

  /** All are known: they were listed, or the journal had them in this boot. */
  get knowsPools(): boolean {
    const { source, bootId } = this.#options;
    return source.isSynced || [...this.#journalled.all()].some((block) => block.bootId === bootId);
  }

  /** Every pool was listed: one that is not known is not there. */
  get listedPools(): boolean {
    return this.#options.source.isSynced;
  }

  factsOf(pod: PodRef): PodFacts {
    return this.#options.source.factsOf(pod);
  }

  /** The labels of a namespace decide: they are to become known. */
  wantNamespaces(): void {
    this.#options.source.wantNamespaces?.();
  }

  /** As it is known now; as the journal has it while that is not known yet. */
  pool(name: string): Pool | undefined {
    return this.#pools.get(name);
  }

  /** The longest of the pools that are known to have the address; 0: none. */
  cooldownOf(address: Address): number {
    return this.pools().reduce(
      (most, pool) => (isInNetwork(pool, address) ? Math.max(most, pool.cooldownMs) : most),
      0,
    );
  }

  /** When the journal was told that the block is given back; undefined: it was not. */
  returningSince(block: Pick<OwnedBlock, "cidr" | "uid">): number | undefined {
    const at = this.#journalled.of(block)?.returningAt ?? 0;
    return at > 0 ? at : undefined;
  }

  /** Whether pods that ask for nothing are served out of blocks of the pool; undefined: it is not known. */
  hasBlocks(name: string): boolean | undefined {
    const pool = this.pool(name);
    if (pool === undefined) return this.#options.source.isSynced ? false : undefined;
    return pool.families.some((family) => blockLength(pool, family) !== undefined);
  }

  /** Who has blocks of the pool, so far as is known. */
  ownersOf(pool: string): readonly PoolOwner[] {
    return this.#options.source.ownersOf?.(pool) ?? [];
  }

  /** Whether everybody who reads a refusal may know of nodes and blocks: where a setting says so, and on a host that has but one user. */
  get refusalsNameAll(): boolean {
    return this.#options.source.refusalsNameAll ?? this.makesBlocks;
  }

  /** Whether the block may be proven now. */
  mayProve(stored: Stored<"block">): boolean {
    return this.#proven.mayProve(stored);
  }

  /** This agent has written the status of the block, which is as given, and nothing that was sent before can arrive any more. */
  async prove(stored: Stored<"block">): Promise<void> {
    if (!this.mayProve(stored)) return; // fenced meanwhile
    this.#returned.note(stored, this.returnedOf(stored));
    this.#proven.prove(idOf(ownedOf(stored)));
    this.follow();
    await this.record();
  }

  /** No controller elsewhere grants blocks: there are those that `more` makes. */
  get makesBlocks(): boolean {
    return this.#options.source.more !== undefined;
  }

  /** Somebody vouches that nothing runs on this node, as its Node object says: it gives from no block. */
  get isFenced(): boolean {
    return this.#options.source.ownNode?.()?.fenced === true;
  }

  /** An ADD has found no free address: whether there are more blocks now, where they can be asked for. */
  async more(pools: readonly string[]): Promise<boolean> {
    return (await this.#options.source.more?.(pools)) ?? false;
  }

  /** Resolves when something of the blocks was heard, or when the signal aborts. */
  async heard(signal: AbortSignal): Promise<void> {
    await this.#news.heard(signal);
  }

  /** Something that an ADD may wait for has become known. */
  wake(): void {
    this.#news.wake();
  }

  /** Brings memory in line with the records, at once. To be called whenever they have changed. */
  follow(): void {
    const { source, blocks } = this.#options;
    this.#proven.followNode();
    const seen = new Map([...source.blocks()].map((stored) => [stored.key, stored]));
    for (const stored of seen.values()) {
      if (!isGiven(stored.record)) blocks.remove(stored.key);
      else
        blocks.put(
          this.#ownedOf(stored),
          isReturned(stored.record) ? "returning" : this.#stateOf(ownedOf(stored)),
          { recalled: stored.record.recalledAt !== undefined },
        );
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
    const { blocks } = this.#options;
    const block = blocks.get(cidr)?.space.block;
    if (block === undefined || !blocks.stopGiving(cidr)) return false;
    this.#givingUp.add(idOf(block));
    const write = this.#writing.then(() => this.#write({ put: [this.#journalled.rowOf(block, now)] }));
    this.#writing = write.catch(() => undefined);
    try {
      await write;
      return true;
    } finally {
      this.#givingUp.delete(idOf(block));
      this.follow(); // if it could not be put down nothing was said, and it may be given from again
    }
  }

  /** What was given back of it one by one, by its record, the journal and this process. */
  returnedOf(stored: Stored<"block">): readonly Address[] {
    return returnedIn(stored, this.#ownedOf(stored));
  }

  /** Puts down that so many free addresses of the block are given back: from here on none of them is given. Gives how many. */
  async giveUpAddresses(stored: Stored<"block">, count: number): Promise<number> {
    const { blocks } = this.#options;
    const pool = this.pool(stored.record.pool);
    const before = this.#returned.of(stored);
    const addresses = pool === undefined ? [] : blocks.someFree(stored.key, count, pool.cooldownMs);
    if (addresses.length === 0) return 0;
    this.#returned.note(stored, [...before, ...addresses]);
    this.follow(); // nothing came between
    const put = () => [this.#journalled.rowOf(this.#ownedOf(stored), 0)];
    const write = this.#writing.then(() => this.#write({ put: put(), parted: true }));
    this.#writing = write.catch(() => undefined);
    try {
      await write;
    } catch (error) {
      this.#returned.note(stored, before); // nothing was said, and they may be given again
      this.follow();
      throw error;
    }
    return addresses.length;
  }

  #ownedOf(stored: Stored<"block">): OwnedBlock {
    return this.#returned.ownedOf(stored, this.#journalled.of(ownedOf(stored)));
  }

  #trustJournal(seen: ReadonlyMap<string, unknown>): void {
    const { blocks, bootId } = this.#options;
    for (const block of this.#journalled.all()) {
      if (seen.has(block.cidr) || block.bootId !== bootId) continue;
      blocks.put(block, this.#stateOf(block));
    }
  }

  #stateOf(block: OwnedBlock): BlockState {
    const id = idOf(block);
    if (this.#givingUp.has(id) || this.returningSince(block) !== undefined) return "returning";
    return this.#proven.isProven(id) ? "giving" : "unproven";
  }

  async #record(): Promise<void> {
    const { source } = this.#options;
    const stored = [...source.blocks()].filter(({ record }) => isGiven(record));
    const put = stored.flatMap((one) =>
      this.#proven.isProven(idOf(ownedOf(one))) ? (this.#journalled.rowFor(this.#ownedOf(one)) ?? []) : [],
    );
    const known = new Set([...source.blocks()].map((one) => idOf(ownedOf(one))));
    const gone = source.isSynced ? this.#journalled.besides(known) : [];
    put.push(...this.#journalled.doubted(gone));
    const pools = this.#pools.change();
    if (put.length + gone.length + pools.pools.length + pools.poolsGone.length === 0) return;
    const parted = stored.some((one) => one.record.within !== undefined || this.returnedOf(one).length > 0);
    await this.#write({ put, gone, parted, ...pools });
    this.#pools.written(pools);
  }

  async #write(change: BlockChange): Promise<void> {
    await this.#options.journal.write({ blocks: change });
    this.#journalled.written(change);
    for (const row of change.gone ?? []) {
      this.#returned.forget(row);
      this.#proven.forget(row);
    }
  }
}

/** By its record: its node may give what is no hole. */
function isGiven({ granted, releasedAt }: Block): boolean {
  return granted === true && releasedAt === undefined;
}
