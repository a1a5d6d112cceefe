// SPDX-License-Identifier: Apache-2.0
import { BerthError, isStoreFault } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { Rests } from "../../../allocator/base/rests.ts";
import { type BlockStatus, isReturned, MOST_RETURNED, returnedOf } from "../../../allocator/model/block.ts";
import type { Store, Stored } from "../../../allocator/store/store.ts";
import type { BlockFollower } from "./block-follower.ts";
import type { BlockSource } from "./block-source.ts";
import type { BlockSpace } from "./block-space.ts";
import { EmptyBlocks } from "./empty-blocks.ts";
import type { BlockEntry, NodeBlocks } from "./node-blocks.ts";

const LOOK_MS = 10_000;
/** How often it is said of one block how many of its addresses are used. */
const USED_MS = 30_000;
/** The same where another node lacks addresses of the pool, and fewer are used. */
const FREED_MS = 2_000;
/** How many statuses about use alone are written in one look. */
const REPORTS_AT_ONCE = 4;
/** Whoever asks for a block takes an owner for silent after as long. */
const LONGEST_PAUSE_MS = 20_000;
/** Each is waited for for seconds, and one whose answer is lost says little of the next. */
const MOST_LOST = 3;
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
  readonly #empty: EmptyBlocks;
  readonly #rests: Rests; // UID and revision of a block
  readonly #late = new Set<string>(); // UID of blocks at which the store failed, the last of them last
  readonly #said = new Map<string, Said>(); // UID of a block -> what its status says of use, by this process
  readonly #answered = new Map<string, number>(); // UID of a block in use -> the recall that another one was given back for
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: BlockReporterOptions) {
    this.#options = options;
    this.#empty = new EmptyBlocks(options);
    this.#rests = new Rests(options.clock);
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

  /**
   * One look at every block. What is wrong with one keeps no other from it, and rests, until its record changes or for a while: it would
   * have each look fail. A block at which the store failed comes last in the next look, and a few of them end this one. Rejects with what
   * was wrong with the store, or else with the first block.
   */
  async look(): Promise<void> {
    const { source, blocks } = this.#options;
    let fault: unknown;
    let lost = 0;
    const records = [...source.blocks()];
    this.#forget(records);
    const short = poolsAskedFor(records);
    let reports = 0;
    for (const stored of this.#inOrder(records)) {
      const entry = blocks.get(stored.key);
      if (entry === undefined || entry.space.block.uid !== stored.uid) continue;
      try {
        await this.#settle(stored, entry);
        const isShort = short.has(stored.record.pool);
        if (await this.#report(stored, entry, { isShort, mayTell: reports < REPORTS_AT_ONCE })) reports++;
        this.#rests.end(restOf(stored));
        this.#late.delete(stored.uid);
      } catch (error) {
        if (!isStoreFault(error)) {
          this.#rests.begin(restOf(stored));
          fault ??= error;
          continue;
        }
        this.#late.delete(stored.uid);
        this.#late.add(stored.uid);
        fault = error;
        if (++lost >= MOST_LOST) break;
      }
    }
    if (fault !== undefined) throw fault;
  }

  /** Without those that rest. */
  #inOrder(records: readonly Stored<"block">[]): readonly Stored<"block">[] {
    const late = [...this.#late];
    const place = ({ uid }: Stored<"block">) => late.indexOf(uid);
    return records
      .filter((one) => !this.#rests.isResting(restOf(one)))
      .toSorted((a, b) => place(a) - place(b));
  }

  /** Says how much of it is used, where that is news. Gives whether it is one of the few that are said in a look. */
  async #report(
    stored: Stored<"block">,
    entry: BlockEntry,
    { isShort, mayTell }: { readonly isShort: boolean; readonly mayTell: boolean },
  ): Promise<boolean> {
    const isAskedInVain = this.#isAskedInVain(stored, entry);
    const isToTell = isAskedInVain || (mayTell && this.#isNews(stored, entry, isShort));
    if (isToTell) await this.#sayUsed(stored, entry.space);
    return isToTell && !isAskedInVain;
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
        pause = isStoreFault(error) ? Math.min(pause * 2, LONGEST_PAUSE_MS) : LOOK_MS;
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
    if (this.#empty.isDue(stored, space)) await this.#giveUp(stored.key);
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
    this.#empty.forgetAllBut(there);
    this.#rests.forgetOld();
    for (const known of [this.#said, this.#answered, this.#late])
      for (const uid of known.keys()) if (!there.has(uid)) known.delete(uid);
  }
}

function restOf({ uid, revision }: Stored<"block">): string {
  return `${uid} ${revision}`;
}

/** Pools that other nodes lack addresses of: something of this node's is asked back. */
function poolsAskedFor(records: readonly Stored<"block">[]): ReadonlySet<string> {
  const asked = records.filter(
    ({ record }) =>
      record.recalledAt !== undefined || (record.recalledAddresses ?? 0) > returnedOf(record).length,
  );
  return new Set(asked.map(({ record }) => record.pool));
}
