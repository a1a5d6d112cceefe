// SPDX-License-Identifier: Apache-2.0

import { isStoreFault, messageOf } from "../base/errors.ts";
import { inParallel } from "../base/parallel.ts";
import type { LogFields } from "../base/ports.ts";
import type { RecordCache } from "../cache/cache.ts";
import type { Context } from "../cache/context.ts";
import { bitsOf, type Family } from "../ip/address.ts";
import type { Block } from "../model/block.ts";
import { BlockSpace, blockLength } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import { AskBack, type Lacking } from "./ask-back.ts";
import type { BlockFacts } from "./block-facts.ts";
import { BlockFit } from "./block-fit.ts";
import { type BlockPlan, type NodeNeed, type PoolSituation, planBlocks, withSingles } from "./block-plan.ts";
import { BlockTimes } from "./block-times.ts";
import { isDrained } from "./drained.ts";
import { endCooldown, giveBack, recall, returnedBy } from "./give-back.ts";
import { finishGrant } from "./grant.ts";
import { grantInLots } from "./grant-lots.ts";
import { SILENT_MS, staysWith } from "./holdings.ts";
import { KnownBlocks } from "./known-blocks.ts";
import { PoolFaults } from "./pool-faults.ts";
import { askForSingles, grantSingles, type SinglesInput } from "./spread-singles.ts";
import { UnansweredRequests } from "./unanswered-requests.ts";
import { UnprovenBlocks } from "./unproven-blocks.ts";

type Deps = Context & {
  readonly view: Pick<
    RecordCache,
    "pools" | "pool" | "poolRecord" | "blocks" | "blocksOf" | "block" | "reservationCount" | "unpickable"
  >;
};

/** A node that needs more than there is, for people and for whoever asks for blocks back. */
export interface Shortage extends Pick<BlockPlan, "recalls" | "short"> {
  readonly pool: string;
  readonly family: Family;
  /** Nodes that are asked for single addresses. */
  readonly asked: readonly string[];
}

interface Planned {
  readonly situation: PoolSituation;
  readonly plan: BlockPlan;
}

const NOT_GIVEN = "blocks of a pool cannot be given";
/** Blocks that are settled at the same time: most of them cost nothing. */
const SETTLED_AT_ONCE = 16;

/**
 * Hands blocks out and takes them back, pass by pass: level-based, from whatever is there. Any number of them may run; one at a
 * time saves work. What it has granted itself it counts before the cache shows it.
 */
export class BlockDistributor {
  readonly #context: Deps & { readonly times: BlockTimes };
  readonly #facts: BlockFacts;
  readonly #mayWrite: () => boolean;
  readonly #unanswered: UnansweredRequests;
  readonly #fit = new BlockFit();
  readonly #known: KnownBlocks;
  readonly #faults: PoolFaults;
  readonly #askBack: AskBack;
  #there: (readonly NodeNeed[])[] = []; // the nodes of each pool, in this pass

  constructor(context: Deps, facts: BlockFacts, mayWrite: () => boolean = () => true) {
    this.#context = { ...context, times: new BlockTimes() };
    this.#facts = facts;
    this.#mayWrite = mayWrite;
    this.#faults = new PoolFaults(context.clock);
    const unproven = new UnprovenBlocks(context.clock, facts.areProven === true);
    this.#known = new KnownBlocks({ ...this.#context, unproven });
    this.#askBack = new AskBack(this.#context, { known: this.#known, faults: this.#faults, mayWrite });
    this.#unanswered = new UnansweredRequests(context.clock, SILENT_MS);
  }

  /** Why blocks of a pool could not be given in the last pass, by its name. */
  get faults(): ReadonlyMap<string, string> {
    return this.#faults.words;
  }

  async pass(): Promise<readonly Shortage[]> {
    this.#known.forgetShown();
    this.#unanswered.see(this.#context.view.blocks());
    const shortages: Shortage[] = [];
    // CIDRs of nodes are for whoever writes them into the cluster's objects (ADR 0029)
    const blocks = [...this.#context.view.blocks()].filter(({ record }) => record.use === undefined);
    await inParallel(blocks, SETTLED_AT_ONCE, (one) =>
      this.#safely("block cannot be settled", { kind: "block", key: one.key }, () => this.#settle(one)),
    );
    this.#known.lookAtAll();
    this.#faults.beginPass();
    this.#askBack.forgetOld();
    this.#there = [];
    for (const { name } of this.#context.view.pools()) shortages.push(...(await this.#spreadAll(name)));
    this.#faults.forgetGone(() => this.#there.flat());
    return shortages;
  }

  /** Of all families of the pool, as it is by now. */
  async #spreadAll(name: string): Promise<readonly Shortage[]> {
    const pool = this.#context.view.pool(name);
    if (pool === undefined) return [];
    const shortages: Shortage[] = [];
    const tell = (why: string) => this.#faults.met(pool, why);
    this.#faults.begin(pool);
    for (const family of pool.families) {
      const spread = () => this.#spread(pool, family);
      const about = { pool: name };
      const shortage = await this.#safely(NOT_GIVEN, about, spread, tell);
      if (shortage !== undefined) shortages.push(shortage);
    }
    this.#faults.tried(pool);
    return shortages;
  }

  /** What is wrong with one record says nothing about the next one; what is wrong with the store does. */
  async #safely<T>(words: string, about: LogFields, work: () => Promise<T>, tell = (_why: string) => {}) {
    try {
      return await work();
    } catch (error) {
      if (isStoreFault(error)) throw error;
      this.#context.log.error(words, { ...about, error: messageOf(error) });
      return void tell(messageOf(error));
    }
  }

  async #settle(stored: Stored<"block">): Promise<void> {
    if (!this.#mayWrite()) return;
    if (stored.record.releasedAt !== undefined)
      return void (await endCooldown(this.#context, stored, (block) => this.#hasSingles(block)));
    const evidence = returnedBy(stored) ?? (await this.#facts.evidence(stored));
    if (evidence !== undefined) return void (await giveBack(this.#context, stored, evidence));
    const pool = this.#context.view.pool(stored.record.pool);
    const drains = isDrained(this.#context.view, stored.record.pool);
    if (pool === undefined && !drains) return;
    if (stored.record.granted !== true) return void (await finishGrant(this.#context, stored));
    if (pool === undefined || drains) return await this.#drain(stored);
    const isTheirs = this.#facts.selects?.(pool, stored.record.node) !== false;
    if (!isTheirs || !this.#fit.isIn(pool, stored.record)) await recall(this.#context, stored);
  }

  #hasSingles({ cidr, pool }: Block): boolean {
    for (const { record } of this.#context.view.blocksOf(pool)) if (record.within === cidr) return true;
    return false;
  }

  /** Its pool gives nothing more, or is gone, which a cache that is behind may say of a new one: its owner is asked for it. */
  async #drain(stored: Stored<"block">): Promise<void> {
    const { view, store } = this.#context;
    const { pool, recalledAt } = stored.record;
    if (recalledAt !== undefined) return;
    if (view.pool(pool) === undefined && (await store.get("pool", pool)) !== undefined) return;
    await recall(this.#context, stored);
  }

  async #spread(pool: Pool, family: Family): Promise<Shortage | undefined> {
    const length = blockLength(pool, family);
    if (length === undefined || pool.disabled) return undefined;
    const space = new BlockSpace(pool, family, length);
    const nodes = this.#facts.nodesFor(pool, family);
    this.#there.push(nodes);
    const { situation, plan } = await this.#grantAll(pool, space, nodes);
    if (this.#faults.restsWhole(pool)) return undefined;
    if (length === bitsOf(family)) return await this.#ask(pool, family, { nodes, ...plan });
    const singles = await this.#grantSingles(pool, family, { nodes, ...plan });
    const owners = singles.map(({ record }) => record.node);
    const left = owners.length === 0 ? plan : planBlocks(withSingles(situation, owners));
    return await this.#ask(pool, family, { nodes, ...left });
  }

  /**
   * What is planned for a node that is refused it, or has no turn now, is free: it goes to nodes that there is none for. Gives the plan
   * for all, as it is by then.
   */
  async #grantAll(pool: Pool, space: BlockSpace, nodes: readonly NodeNeed[]): Promise<Planned> {
    let planned = await this.#grantTo(pool, space, nodes);
    for (const isLeftOut of this.#faults.leftOut(pool)) {
      if (planned.plan.short.length === 0 || planned.plan.grants.length === 0) break;
      const others = nodes.filter((one) => !isLeftOut(one));
      await this.#grantTo(pool, space, others);
      const { situation } = this.#known.situation(pool, space, nodes);
      planned = { situation, plan: planBlocks(situation) };
    }
    return planned;
  }

  /** Plans for these nodes, and grants what is planned. */
  async #grantTo(pool: Pool, space: BlockSpace, nodes: readonly NodeNeed[]): Promise<Planned> {
    const { situation, taken } = this.#known.situation(pool, space, nodes);
    const plan = planBlocks(situation);
    const { family } = space;
    const requests = plan.grants.map(({ node, nodeUID }) => ({ family, node, nodeUID }));
    const lots = grantInLots(
      { ...this.#context, faults: this.#faults },
      { pool, requests, known: taken, words: NOT_GIVEN, mayWrite: () => this.#mayWrite() },
    );
    for await (const lot of lots) for (const block of lot) this.#known.keep(block);
    return { situation, plan };
  }

  /** Those that are ready come first: whoever waits for them asks nobody. */
  async #grantSingles(
    pool: Pool,
    family: Family,
    about: Pick<SinglesInput, "nodes" | "short">,
  ): Promise<readonly Stored<"block">[]> {
    const names = new Set(about.short.map(({ node }) => node));
    const asking = about.nodes.filter(({ node }) => names.has(node));
    const due = new Set(this.#faults.due(pool, asking).map(({ node }) => node));
    const short = about.short.filter(({ node }) => due.has(node));
    if (short.length === 0) return [];
    const refused = (need: NodeNeed, fault: unknown) => {
      const why = messageOf(fault);
      this.#context.log.error(NOT_GIVEN, { pool: pool.name, error: why });
      this.#faults.met(pool, why, { refused: [need], untried: [] });
    };
    const input = this.#singlesInput(pool, family, { ...about, short });
    const granted = await grantSingles({ ...this.#forSingles(), refused }, input);
    this.#faults.served(
      pool,
      granted.map(({ record }) => record),
    );
    for (const block of granted) this.#known.keep(block);
    return granted;
  }

  /** Asks those who have more than they need. */
  async #ask(pool: Pool, family: Family, { nodes, short, recalls }: Lacking): Promise<Shortage | undefined> {
    const coming = await this.#askBack.recall(pool, family, { nodes, short, recalls });
    const isOfSingles = blockLength(pool, family) === bitsOf(family);
    const input = () => this.#singlesInput(pool, family, { nodes, short });
    const asking = (one: Stored<"block">, ask: () => Promise<void>) => this.#askBack.asking(pool, one, ask);
    const deps = { ...this.#forSingles(), asking };
    const asked = isOfSingles ? [] : await askForSingles(deps, input(), coming);
    return short.length === 0 ? undefined : { pool: pool.name, family, recalls, short, asked };
  }

  #forSingles() {
    return { store: this.#context.store, mayWrite: () => this.#mayWrite() };
  }

  #singlesInput(pool: Pool, family: Family, about: Pick<SinglesInput, "nodes" | "short">): SinglesInput {
    const now = this.#context.clock.now();
    const blocks = this.#known.of(pool.name, family);
    // who has not answered for a block does not do so for addresses of it
    const isSilent = (one: Stored<"block">) => staysWith(this.#known.past(one).record, now) === "silent";
    const unanswered = { has: (one: Stored<"block">) => this.#unanswered.has(one) || isSilent(one) };
    const unpickable = this.#known.unpickable(pool, family);
    const { nodes, short } = about;
    return { nodes, short, pool, family, blocks, unpickable, unanswered };
  }
}
