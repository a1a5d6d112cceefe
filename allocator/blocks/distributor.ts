// SPDX-License-Identifier: Apache-2.0

import { BerthError, messageOf } from "../base/errors.ts";
import { inParallel } from "../base/parallel.ts";
import { ownedIn } from "../cache/block-index.ts";
import type { RecordCache } from "../cache/cache.ts";
import type { Context } from "../cache/context.ts";
import { bitsOf, type Family, parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { sizeOf } from "../ip/ip-range.ts";
import { type Block, isReturned, returnedOf } from "../model/block.ts";
import { BlockSpace, blockLength } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import { type BlockPlan, blocksToRecall, type Holding, type NodeNeed, planBlocks } from "./block-plan.ts";
import { type BlockEvidence, endCooldown, giveBack, recall, returnedBy } from "./give-back.ts";
import { finishGrant, grantBlocks } from "./grant.ts";
import { type SinglesInput, spreadSingles } from "./spread-singles.ts";
import { UnansweredAsks } from "./unanswered-asks.ts";

/** What the distributor goes by besides the records. */
export interface BlockFacts {
  /** The nodes that may have blocks of the pool now, and what their pods need of it. May be behind. */
  nodesFor(pool: Pool, family: Family): readonly NodeNeed[];
  /** What proves that the block may be taken from its node, besides its agent's word: never a cache's word alone. */
  evidence(block: Stored<"block">): Promise<BlockEvidence | undefined>;
}

type Deps = Context & {
  readonly view: Pick<
    RecordCache,
    "pools" | "pool" | "blocks" | "blocksOf" | "block" | "reservationCount" | "unpickable"
  >;
};

/** A node that needs more than there is, for people and for whoever asks for blocks back. */
export interface Shortage extends Pick<BlockPlan, "recalls" | "short"> {
  readonly pool: string;
  readonly family: Family;
  /** Nodes that are asked for single addresses. */
  readonly asked: readonly string[];
}

/** After this long a block that was granted here and is not in the cache is no longer counted: it has gone again. */
const SHOWN_MS = 60_000;
/** After this long a block that was asked for and is in use was answered: another one came for it, or its owner has none. */
const ANSWERED_MS = 10_000;
/** After this long an owner that has not answered does not do so soon: its agent looks every 10 s. */
const SILENT_MS = 20_000;
/** What cools for longer than this is not waited for. */
const AWAITED_MS = 30_000;
/** Blocks that are settled at the same time: most of them cost nothing. */
const SETTLED_AT_ONCE = 16;
/** Reservations are looked at once for so many blocks. */
const GRANTS_AT_ONCE = 256;
/** Faults of the store itself: what comes next would meet them too. */
const OF_ALL: ReadonlySet<string> = new Set([
  "STORE_UNAVAILABLE",
  "STORE_FULL",
  "STORE_READ_ONLY",
  "TIMED_OUT",
  "NOT_READY",
]);

/**
 * Hands blocks out and takes them back, pass by pass: level-based, from whatever is there. Any number of them may run; one at a
 * time saves work. What it has granted itself it counts before the cache shows it.
 */
export class BlockDistributor {
  readonly #context: Deps;
  readonly #facts: BlockFacts;
  readonly #mayWrite: () => boolean;
  readonly #unanswered: UnansweredAsks;
  readonly #granted = new Map<string, { readonly block: Stored<"block">; readonly until: number }>(); // by CIDR

  constructor(context: Deps, facts: BlockFacts, mayWrite: () => boolean = () => true) {
    this.#context = context;
    this.#facts = facts;
    this.#mayWrite = mayWrite;
    this.#unanswered = new UnansweredAsks(context.clock, SILENT_MS);
  }

  async pass(): Promise<readonly Shortage[]> {
    this.#forgetShown();
    this.#unanswered.see(this.#context.view.blocks());
    const shortages: Shortage[] = [];
    await inParallel([...this.#context.view.blocks()], SETTLED_AT_ONCE, (one) => this.#settleSafely(one));
    for (const pool of this.#context.view.pools()) {
      for (const family of pool.families) {
        const shortage = await this.#spread(pool, family);
        if (shortage !== undefined) shortages.push(shortage);
      }
    }
    return shortages;
  }

  /** What is wrong with one block says nothing about the next one; what is wrong with the store does. */
  async #settleSafely(stored: Stored<"block">): Promise<void> {
    if (!this.#mayWrite()) return;
    try {
      await this.#settle(stored);
    } catch (error) {
      if (error instanceof BerthError && OF_ALL.has(error.code)) throw error;
      this.#context.log.error("block cannot be settled", {
        kind: "block",
        key: stored.key,
        error: messageOf(error),
      });
    }
  }

  async #settle(stored: Stored<"block">): Promise<void> {
    if (stored.record.releasedAt !== undefined)
      return void (await endCooldown(this.#context, stored, (block) => this.#hasSingles(block)));
    const evidence = returnedBy(stored) ?? (await this.#facts.evidence(stored));
    if (evidence !== undefined) return void (await giveBack(this.#context, stored, evidence));
    if (this.#context.view.pool(stored.record.pool)?.disabled !== false) return await this.#drain(stored);
    if (stored.record.granted !== true) await finishGrant(this.#context, stored);
  }

  #hasSingles({ cidr, pool }: Block): boolean {
    for (const { record } of this.#context.view.blocksOf(pool)) if (record.within === cidr) return true;
    return false;
  }

  /** Its pool gives nothing more, or is gone: the owner is asked for it, and what nobody was granted goes at once. */
  async #drain(stored: Stored<"block">): Promise<void> {
    if (stored.record.granted === true) return await recall(this.#context, stored);
    await this.#context.store.remove("block", stored);
  }

  async #spread(pool: Pool, family: Family): Promise<Shortage | undefined> {
    const length = blockLength(pool, family);
    if (length === undefined || pool.disabled) return undefined;
    const space = new BlockSpace(pool, family, length);
    const blocks = this.#storedOf(pool.name, family).map(({ record }) => record);
    const nodes = this.#facts.nodesFor(pool, family);
    const taken = new IntervalSet();
    for (const { cidr } of blocks) taken.add(space.numberOf(networkOf(cidr)));
    // what would be granted and have nothing to give is not there to be granted
    for (const interval of space.usedUp(this.#context.view.unpickable(pool, family)))
      taken.addInterval(interval);
    const plan = planBlocks({
      total: space.count - taken.size + BigInt(blocks.length),
      size: 2 ** (bitsOf(family) - length),
      held: blocks.map((block) => holdingOf(block, this.#context.clock.now())),
      nodes,
    });
    const requests = plan.grants.map(({ node, nodeUID }) => ({ family, node, nodeUID }));
    for (let n = 0; n < requests.length && this.#mayWrite(); n += GRANTS_AT_ONCE) {
      const some = requests.slice(n, n + GRANTS_AT_ONCE);
      for (const block of await grantBlocks(this.#context, pool, some, taken)) this.#keep(block);
    }
    const { recalls, short } = plan;
    const coming = await this.#recall(pool.name, family, recalls);
    const asked =
      length === bitsOf(family) ? [] : await this.#singles(pool, family, { nodes, short, coming });
    return short.length === 0 ? undefined : { pool: pool.name, family, recalls, short, asked };
  }

  async #singles(
    pool: Pool,
    family: Family,
    about: Pick<SinglesInput, "nodes" | "short" | "coming">,
  ): Promise<readonly string[]> {
    const { store, view } = this.#context;
    const mayWrite = () => this.#mayWrite();
    const blocks = this.#storedOf(pool.name, family);
    const [unpickable, unanswered] = [view.unpickable(pool, family), this.#unanswered];
    const input = { ...about, pool, family, blocks, unpickable, unanswered };
    const { granted, asked } = await spreadSingles({ store, mayWrite }, input);
    for (const block of granted) this.#keep(block);
    return asked;
  }

  #keep(block: Stored<"block">): void {
    this.#granted.set(block.key, { block, until: this.#context.clock.monotonic() + SHOWN_MS });
  }

  /** Gives how many addresses are about to come back with whole blocks. */
  async #recall(pool: string, family: Family, recalls: BlockPlan["recalls"]): Promise<number> {
    const now = this.#context.clock.now();
    const all = [...this.#context.view.blocksOf(pool)];
    const held = all.filter(({ record }) => isHeld(record, family));
    const blocks = held.map((stored) => {
      const { node, status, recalledAt } = stored.record;
      const used = status?.used ?? 0;
      const expected = recalledAt !== undefined && !isOverdue(stored.record, now);
      return { stored, node, used, recalled: recalledAt !== undefined, expected };
    });
    const asked = blocksToRecall(blocks, recalls);
    for (const { stored } of asked) {
      if (this.#mayWrite()) await recall(this.#context, stored);
    }
    const back = [...blocks.filter(({ expected }) => expected), ...asked].map(({ stored }) => stored.record);
    const cooldownMs = this.#context.view.pool(pool)?.cooldownMs ?? 0;
    const isAwaited = ({ releasedAt = now }: Block) => releasedAt + cooldownMs - now <= AWAITED_MS;
    const cooling = all.map(({ record }) => record).filter((one) => isCooling(one, family) && isAwaited(one));
    return [...back, ...cooling].reduce((sum, block) => sum + usableIn(block), 0);
  }

  #storedOf(pool: string, family: Family): readonly Stored<"block">[] {
    const own = [...this.#granted.values()].map(({ block }) => block);
    const all = [...this.#context.view.blocksOf(pool), ...own.filter(({ record }) => record.pool === pool)];
    return all.filter(({ key }) => networkOf(key).family === family);
  }

  #forgetShown(): void {
    const now = this.#context.clock.monotonic();
    for (const [cidr, { until }] of this.#granted) {
      if (now >= until || this.#context.view.block(cidr) !== undefined) this.#granted.delete(cidr);
    }
  }
}

function isHeld(block: Block, family: Family): boolean {
  return block.granted === true && !isGivenBack(block) && networkOf(block.cidr).family === family;
}

/** It goes whole. */
function isCooling(block: Block, family: Family): boolean {
  return isGivenBack(block) && block.division === undefined && networkOf(block.cidr).family === family;
}

/** What was given back is nobody's any more, before anybody has written that. */
function isGivenBack(block: Block): boolean {
  return block.releasedAt !== undefined || isReturned(block);
}

function holdingOf(block: Block, now: number): Holding | "cooling" {
  if (isGivenBack(block)) return "cooling";
  return { node: block.node, usable: usableIn(block), overdue: isOverdue(block, now) };
}

/** It was asked for, and is not to be waited for. It comes all the same, as soon as its owner does not use it. */
function isOverdue({ recalledAt, status, node }: Block, now: number): boolean {
  if (recalledAt === undefined) return false;
  const used = status?.node === node ? status.used : 0;
  return now - recalledAt >= (used > 0 ? ANSWERED_MS : SILENT_MS);
}

/** Addresses that its owner may give. */
function usableIn(block: Block): number {
  const owned = ownedIn(block).intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);
  return Number(owned) - returnedOf(block).length;
}

function networkOf(text: string) {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new BerthError("INTERNAL", `${text} is no block`);
  return cidr;
}
