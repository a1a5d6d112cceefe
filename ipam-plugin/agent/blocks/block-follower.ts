// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../../allocator/ip/address.ts";
import { type Block, isReturned } from "../../../allocator/model/block.ts";
import { NODE_GRACE_MS } from "../../../allocator/model/cluster-state.ts";
import { blockLength } from "../../../allocator/pool/blocks.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { PodRef } from "../claims/claim-source.ts";
import type { Journal, JournalContents } from "../journal/journal.ts";
import type { BlockChange, JournalBlock, OwnedBlock } from "../journal/owned-blocks.ts";
import type { BlockSource, PodFacts, PoolOwner } from "./block-source.ts";
import { KnownPools } from "./known-pools.ts";
import { News } from "./news.ts";
import type { BlockState, NodeBlocks } from "./node-blocks.ts";
import { idOf, ownedOf, ReturnedAddresses, returnedIn } from "./returned-addresses.ts";

/** In place of a boot: the journal's word about the block does not count before it is proven. */
const DOUBTED = "";

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
 * | its record names this node, is granted, does not cool    | when it is proven, and not given back by journal   |
 * | the record is not known yet, the journal is of this boot | the same                                           |
 * | the record is not known yet, the journal is of another   | not before the record is seen                      |
 * | all was listed, and the record is not there              | no                                                 |
 *
 * A block that the journal does not know of this boot is `unproven` until this agent has written its status. An agent with another
 * journal, that is lost, may have sent word that it is given back, or a controller may have seen the node fenced while it was
 * off; what they write later is a conflict from then on. So none is proven while the Node counts as fenced, and those that
 * were are proven anew after that. One that was made for another Node object of this name, of whose sandboxes nothing is known
 * here, waits until that one counts as fenced.
 */
export class BlockFollower {
  readonly #options: BlockFollowerOptions;
  readonly #journalled = new Map<string, JournalBlock>(); // CIDR and UID -> what the journal has of it
  readonly #pools: KnownPools;
  readonly #proven = new Set<string>(); // CIDR and UID of those whose status this process has written
  readonly #doubted = new Set<string>(); // CIDR and UID of those of which the journal is still to be told that they are unproven
  readonly #givingUp = new Set<string>(); // CIDR and UID of those that are about to be journalled as given back
  readonly #returned = new ReturnedAddresses();
  readonly #news = new News();
  #writing: Promise<void> = Promise.resolve();

  constructor(options: BlockFollowerOptions) {
    this.#options = options;
    for (const block of options.contents.blocks) this.#journalled.set(idOf(block), block);
    this.#pools = new KnownPools(options.source, options.contents.pools);
    this.follow();
  }

  /** All that are known; without an API server those that have blocks. */
  pools(): readonly Pool[] {
    return this.#pools.all();
  }

  /** All are known: they were listed, or the journal had them in this boot. */
  get knowsPools(): boolean {
    const { source, bootId } = this.#options;
    return source.isSynced || [...this.#journalled.values()].some((block) => block.bootId === bootId);
  }

  /** Every pool was listed: one that is not known is not there. */
  get listedPools(): boolean {
    return this.#options.source.isSynced;
  }

  factsOf(pod: PodRef): PodFacts {
    return this.#options.source.factsOf(pod);
  }

  /** As it is known now; as the journal has it while that is not known yet. */
  pool(name: string): Pool | undefined {
    return this.#pools.get(name);
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

  /** Who has blocks of the pool, so far as is known. */
  ownersOf(pool: string): readonly PoolOwner[] {
    return this.#options.source.ownersOf?.(pool) ?? [];
  }

  /** Whether everybody who reads a refusal may know of nodes and blocks: where a setting says so, and on a host that has but one user. */
  get refusalsNameAll(): boolean {
    return this.#options.source.refusalsNameAll ?? this.makesBlocks;
  }

  /**
   * Whether the block may be proven now: the Node object is not fenced, and the block is of it, of this machine by its journal, or
   * of an object that counts as fenced.
   */
  mayProve(stored: Stored<"block">): boolean {
    const own = this.#options.source.ownNode?.();
    if (own === undefined) return this.#options.source.ownNode === undefined;
    if (own.fenced) return false;
    const isOwn = own.uid === stored.record.nodeUID || this.#journalled.has(idOf(ownedOf(stored)));
    return isOwn || own.seenForMs >= NODE_GRACE_MS;
  }

  /** This agent has written the status of the block, which is as given, and nothing that was sent before can arrive any more. */
  async prove(stored: Stored<"block">): Promise<void> {
    if (!this.mayProve(stored)) return; // fenced meanwhile
    const id = idOf(ownedOf(stored));
    this.#returned.note(stored, this.returnedOf(stored));
    this.#doubted.delete(id);
    this.#proven.add(id);
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
    if (source.ownNode?.()?.fenced) this.#doubtAll();
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

  /** What was given back of it one by one, by its record, the journal and this process. */
  returnedOf(stored: Stored<"block">): readonly Address[] {
    return returnedIn(stored, this.#ownedOf(stored));
  }

  /** Puts down that so many free addresses of the block are given back: from here on none of them is given. Gives how many. */
  async giveUpAddresses(stored: Stored<"block">, count: number): Promise<number> {
    const { blocks, bootId } = this.#options;
    const pool = this.pool(stored.record.pool);
    const before = this.#returned.of(stored);
    const addresses = pool === undefined ? [] : blocks.someFree(stored.key, count, pool.cooldownMs);
    if (addresses.length === 0) return 0;
    this.#returned.note(stored, [...before, ...addresses]);
    this.follow(); // nothing came between
    const put = () => [{ ...this.#ownedOf(stored), bootId, returningAt: 0 }];
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
    return this.#returned.ownedOf(stored, this.#journalled.get(idOf(ownedOf(stored))));
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
    if (this.#givingUp.has(id) || this.returningSince(block) !== undefined) return "returning";
    return this.#isProven(id) ? "giving" : "unproven";
  }

  #isProven(id: string): boolean {
    const { statuses, ownNode } = this.#options.source;
    const isAlone = statuses === undefined || ownNode === undefined; // what it writes is written before it goes on
    return isAlone || this.#proven.has(id) || this.#journalled.get(id)?.bootId === this.#options.bootId;
  }

  /** The node counts as fenced: from here on its blocks may be taken back. The next process is to know that, too. */
  #doubtAll(): void {
    this.#proven.clear();
    for (const [id, row] of this.#journalled) {
      if (row.bootId === DOUBTED) continue;
      this.#journalled.set(id, { ...row, bootId: DOUBTED });
      this.#doubted.add(id);
    }
  }

  async #record(): Promise<void> {
    const { source } = this.#options;
    const stored = [...source.blocks()].filter(({ record }) => isGiven(record));
    const put = stored.flatMap((one) =>
      this.#isProven(idOf(ownedOf(one))) ? (this.#rowFor(one) ?? []) : [],
    );
    const known = new Set([...source.blocks()].map((one) => idOf(ownedOf(one))));
    const gone = source.isSynced
      ? [...this.#journalled].filter(([id]) => !known.has(id)).map(([, row]) => row)
      : [];
    const departed = new Set(gone.map(idOf));
    for (const id of this.#doubted)
      if (!departed.has(id)) put.push(...[this.#journalled.get(id) ?? []].flat());
    const pools = this.#pools.change(stored.length > 0);
    if (put.length + gone.length + pools.pools.length + pools.poolsGone.length === 0) return;
    const parted = stored.some((one) => one.record.within !== undefined || this.returnedOf(one).length > 0);
    await this.#write({ put, gone, parted, ...pools });
    this.#pools.written(pools);
  }

  /** Undefined: the journal says so already. */
  #rowFor(stored: Stored<"block">): JournalBlock | undefined {
    const block = this.#ownedOf(stored);
    const row = this.#journalled.get(idOf(block));
    const { bootId } = this.#options;
    if (row?.bootId === bootId && row.holes.join() === block.holes.join()) return undefined;
    return { ...block, bootId, returningAt: row?.returningAt ?? 0 };
  }

  async #write(change: BlockChange): Promise<void> {
    await this.#options.journal.write({ blocks: change });
    for (const row of change.put ?? []) {
      const id = idOf(row);
      const isOlder = this.#doubted.has(id) && row.bootId !== DOUBTED; // it was on its way when the doubt came
      this.#journalled.set(id, isOlder ? { ...row, bootId: DOUBTED } : row);
      if (!isOlder) this.#doubted.delete(id);
    }
    for (const row of change.gone ?? []) {
      this.#doubted.delete(idOf(row));
      this.#journalled.delete(idOf(row));
      this.#returned.forget(row);
      this.#proven.delete(idOf(row));
    }
  }
}

/** By its record: its node may give what is no hole. */
function isGiven({ granted, releasedAt }: Block): boolean {
  return granted === true && releasedAt === undefined;
}
