// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { bitsOf } from "../../../allocator/ip/address.ts";
import { type BlockStatus, isReturned, MOST_RETURNED, returnedOf } from "../../../allocator/model/block.ts";
import { blocksAhead } from "../../../allocator/pool/blocks.ts";
import type { Store, Stored } from "../../../allocator/store/store.ts";
import type { BlockFollower } from "./block-follower.ts";
import type { BlockSource } from "./block-source.ts";
import type { BlockSpace } from "./block-space.ts";
import type { BlockEntry, NodeBlocks } from "./node-blocks.ts";

/** How long a block that nobody has asked back stays empty before it is given back. */
export const EMPTY_MS = 300_000;
const LOOK_MS = 10_000;
/** How often it is said of one block how many of its addresses are used. */
const USED_MS = 30_000;
/** The same where another node lacks addresses of the pool, and fewer are used. */
const FREED_MS = 2_000;
/** How many statuses about use alone are written in one look. */
const REPORTS_AT_ONCE = 4;
const LONGEST_PAUSE_MS = 60_000;
const ROUNDS = 8;

interface BlockReporterOptions {
  readonly source: BlockSource;
  readonly blocks: NodeBlocks;
  readonly follower: BlockFollower;
  readonly store: Pick<Store, "get" | "reportBlock">;
  /** This node's name. */
  readonly node: string;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Emptiness {
  /** How many addresses of the block had been given by then. */
  readonly given: number;
  /** On the monotonic clock. */
  readonly since: number;
}

interface Said {
  readonly used: number;
  /** On the monotonic clock. */
  readonly at: number;
}

/**
 * Gives blocks back, and says how much of the others is used. The word that a block is given back is in the journal before it
 * is said, and it is said until the record has it or is gone; so it does not matter where this process ends.
 */
export class BlockReporter {
  readonly #options: BlockReporterOptions;
  readonly #empty = new Map<string, Emptiness>(); // UID of a block -> since when it has been seen empty
  readonly #said = new Map<string, Said>(); // UID of a block -> what its status says of use, by this process
  readonly #answered = new Map<string, number>(); // UID of a block in use -> the recall that another one was given back for
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: BlockReporterOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Something of the blocks has changed. */
  wake(): void {
    this.#wake.abort("blocks have changed");
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await this.#running;
  }

  /** One look at every block. Rejects with what the API server or the journal made of the first that failed. */
  async look(): Promise<void> {
    const { source, blocks } = this.#options;
    const faults: unknown[] = [];
    const records = [...source.blocks()];
    this.#forget(records);
    const short = poolsAskedFor(records);
    let reports = 0;
    for (const stored of records) {
      const entry = blocks.get(stored.key);
      if (entry === undefined || entry.space.block.uid !== stored.uid) continue;
      try {
        await this.#settle(stored, entry);
        const isAskedInVain = this.#isAskedInVain(stored, entry);
        if (
          !isAskedInVain &&
          (reports >= REPORTS_AT_ONCE || !this.#isNews(stored, entry, short.has(stored.record.pool)))
        )
          continue;
        if (!isAskedInVain) reports++;
        await this.#sayUsed(stored, entry.space);
      } catch (error) {
        faults.push(error);
      }
    }
    if (faults.length > 0) throw faults[0];
  }

  /** Whether it is this agent's to give from, and whether it goes back. */
  async #settle(stored: Stored<"block">, { state, space }: BlockEntry): Promise<void> {
    if (state === "unproven") await this.#prove(stored, space);
    else if (state === "giving") {
      await this.#giveUpIfDue(stored, space);
      await this.#returnAddresses(stored, space);
    }
    if (this.#options.blocks.get(stored.key)?.state === "returning") await this.#sayReturned(stored);
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    let pause = LOOK_MS;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      try {
        await this.look();
        pause = LOOK_MS;
      } catch (error) {
        log.warn("what this node's blocks are used for was not told", { error });
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
      if (!this.#stop.signal.aborted) await clock.sleep(pause, this.#wake.signal);
    }
  }

  /** A word that an agent with another journal has sent meets a newer revision from here on. */
  async #prove(stored: Stored<"block">, space: BlockSpace): Promise<void> {
    const { node, follower } = this.#options;
    if (!follower.mayProve(stored)) return;
    const said = await this.#say(stored, () => ({ node, used: space.used }));
    if (said !== undefined) await follower.prove(said);
  }

  async #giveUpIfDue(stored: Stored<"block">, space: BlockSpace): Promise<void> {
    if (this.#isDue(stored, space)) await this.#giveUp(stored.key);
    else await this.#giveAnother(stored, space);
  }

  /** Another node lacks addresses, and no block is free: those of this one that nobody uses, as many as it is asked for. */
  async #returnAddresses(stored: Stored<"block">, space: BlockSpace): Promise<void> {
    const { follower, log } = this.#options;
    const { recalledAddresses = 0 } = stored.record;
    const before = follower.returnedOf(stored).length;
    const wanted = Math.min(recalledAddresses, MOST_RETURNED) - before;
    const now = wanted > 0 ? await follower.giveUpAddresses(stored, wanted) : 0;
    if (now > 0)
      log.info("addresses of a block are given back", { kind: "block", key: stored.key, count: now });
    if (before + now > returnedOf(stored.record).length) await this.#sayUsed(stored, space);
  }

  async #giveUp(cidr: string): Promise<boolean> {
    const { clock, follower, log } = this.#options;
    const isGivenUp = await follower.giveUp(cidr, clock.now());
    if (isGivenUp) log.info("block is given back", { kind: "block", key: cidr });
    return isGivenUp;
  }

  /**
   * Whoever asked for a block in use needs a block, and not this one: an empty one of the pool goes for it. That is said before it is
   * said that this one is in use: who reads that one is in use asks for single addresses, unless a block is about to come.
   */
  async #giveAnother({ uid, record }: Stored<"block">, { family }: BlockSpace): Promise<void> {
    const { recalledAt } = record;
    const { source, blocks } = this.#options;
    if (recalledAt === undefined || this.#answered.get(uid) === recalledAt) return;
    for (const { space, state, recalled } of [...blocks.all()]) {
      const isOther = space.block.pool === record.pool && space.family === family && !recalled;
      if (!isOther || state !== "giving" || space.used > 0) continue;
      if (!(await this.#giveUp(space.block.cidr))) continue;
      this.#answered.set(uid, recalledAt);
      this.wake(); // if the word does not arrive now
      const other = [...source.blocks()].find(({ uid: one }) => one === space.block.uid);
      if (other !== undefined) await this.#sayReturned(other);
      return;
    }
  }

  /** Asked for by somebody who takes it for empty. */
  #isAskedInVain(stored: Stored<"block">, { state, space: { used } }: BlockEntry): boolean {
    const { recalledAt, status, node } = stored.record;
    return (
      state === "giving" &&
      recalledAt !== undefined &&
      used > 0 &&
      (status?.node !== node || status.used === 0)
    );
  }

  /** Asked back, of no use as all of it was given back one by one, or long empty while there is room without it. */
  #isDue({ uid, record }: Stored<"block">, space: BlockSpace): boolean {
    const now = this.#options.clock.monotonic();
    const seen = this.#empty.get(uid);
    if (space.used > 0) {
      this.#empty.delete(uid);
      return false;
    }
    if (record.recalledAt !== undefined || space.usable === 0) return true;
    if (seen?.given !== space.given) {
      this.#empty.set(uid, { given: space.given, since: now });
      return false;
    }
    return now - seen.since >= EMPTY_MS && this.#roomBeside(space) >= this.#keptOf(space);
  }

  /** As much room as the blocks that a node has ahead, besides one that it gives back. */
  #keptOf(space: BlockSpace): number {
    return blocksAhead(this.#options.follower.pool(space.block.pool)) * sizeOf(space);
  }

  #roomBeside({ block, family }: BlockSpace): number {
    let room = 0;
    for (const { space, state } of this.#options.blocks.all()) {
      const isOther = space.block.pool === block.pool && space.family === family && space.block !== block;
      if (isOther && state === "giving") room += space.available;
    }
    return room;
  }

  async #sayReturned(stored: Stored<"block">): Promise<void> {
    const { node, follower } = this.#options;
    const returnedAt = follower.returningSince({ cidr: stored.key, uid: stored.uid });
    if (returnedAt === undefined) return; // not in the journal yet, or the record has it
    await this.#say(stored, () => ({ node, used: 0, returnedAt }));
  }

  async #sayUsed(stored: Stored<"block">, space: BlockSpace): Promise<void> {
    const { node, clock, follower } = this.#options;
    const { used } = space;
    // by now it may be given back: then this is said no more
    const next = () =>
      follower.returningSince({ cidr: stored.key, uid: stored.uid }) ? undefined : { node, used };
    await this.#say(stored, next);
    this.#said.set(stored.uid, { used, at: clock.monotonic() });
  }

  #isNews(
    { uid, record: { status, node } }: Stored<"block">,
    { state, space: { used } }: BlockEntry,
    isPoolShort: boolean,
  ): boolean {
    if (state !== "giving") return false;
    const said = this.#said.get(uid);
    if (said === undefined) return (status?.node === node ? status.used : 0) !== used;
    const pause = isPoolShort && used < said.used ? FREED_MS : USED_MS;
    return said.used !== used && this.#options.clock.monotonic() - said.at >= pause;
  }

  /**
   * By compare-and-set on this incarnation, and never over the word that it is given back; with what is given back of it one by one.
   * Undefined: it was not said.
   */
  async #say(
    stored: Stored<"block">,
    next: () => BlockStatus | undefined,
  ): Promise<Stored<"block"> | undefined> {
    const { store, node, follower } = this.#options;
    let seen: Stored<"block"> | undefined = stored;
    for (let round = 0; round < ROUNDS; round++) {
      const status = next();
      if (status === undefined || seen?.uid !== stored.uid) return undefined;
      if (seen.record.node !== node || isReturned(seen.record) || seen.record.releasedAt !== undefined)
        return undefined;
      const returnedAddresses = follower.returnedOf(seen);
      const one = returnedAddresses.length === 0 ? {} : { returnedAddresses };
      const result = await store.reportBlock(seen, { ...status, ...one });
      if (result.kind === "replaced") return result.stored;
      seen = await store.get("block", stored.key);
    }
    const words = `the status of block ${stored.key} kept changing`;
    throw new BerthError("REVISION_CONFLICT", words, { details: { block: stored.key } });
  }

  #forget(records: readonly Stored<"block">[]): void {
    const there = new Set(records.map(({ uid }) => uid));
    for (const known of [this.#empty, this.#said, this.#answered])
      for (const uid of known.keys()) if (!there.has(uid)) known.delete(uid);
  }
}

/** Pools that other nodes lack addresses of: something of this node's is asked back. */
function poolsAskedFor(records: readonly Stored<"block">[]): ReadonlySet<string> {
  const asked = records.filter(
    ({ record }) =>
      record.recalledAt !== undefined || (record.recalledAddresses ?? 0) > returnedOf(record).length,
  );
  return new Set(asked.map(({ record }) => record.pool));
}

function sizeOf({ network }: BlockSpace): number {
  return 2 ** (bitsOf(network.family) - network.prefixLength);
}
