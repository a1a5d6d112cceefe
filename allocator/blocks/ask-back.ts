// SPDX-License-Identifier: Apache-2.0

import { isStoreFault, messageOf } from "../base/errors.ts";
import { Rests } from "../base/rests.ts";
import type { RecordCache } from "../cache/cache.ts";
import type { Context } from "../cache/context.ts";
import type { Family } from "../ip/address.ts";
import type { Pool } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import { type BlockPlan, blocksToRecall, type NodeNeed, type Recallable } from "./block-plan.ts";
import type { BlockTimes } from "./block-times.ts";
import { recall } from "./give-back.ts";
import { isHeld, SILENT_MS, staysWith, usableIn, usedOf } from "./holdings.ts";
import type { KnownBlocks } from "./known-blocks.ts";
import type { PoolFaults } from "./pool-faults.ts";
import type { SinglesInput } from "./spread-singles.ts";

type Deps = Context & { readonly view: Pick<RecordCache, "blocksOf">; readonly times: BlockTimes };

interface Of {
  readonly known: KnownBlocks;
  readonly faults: PoolFaults;
  readonly mayWrite: () => boolean;
}

/** Who needs more than there is, and who is asked for it. */
export type Lacking = Pick<SinglesInput, "nodes" | "short"> & Pick<BlockPlan, "recalls">;

/** Asks owners for their blocks, where other nodes lack addresses. */
export class AskBack {
  readonly #context: Deps;
  readonly #of: Of;
  readonly #rests: Rests; // UID and revision of blocks whose owners could not be asked

  constructor(context: Deps, of: Of) {
    this.#context = context;
    this.#of = of;
    this.#rests = new Rests(context.clock);
  }

  /** Pass by pass. */
  forgetOld(): void {
    this.#rests.forgetOld();
  }

  /** Gives how many addresses are about to come back with whole blocks. */
  async recall(pool: Pool, family: Family, { nodes, short, recalls }: Lacking): Promise<number> {
    const { known, mayWrite } = this.#of;
    const now = this.#context.clock.now();
    const all = [...this.#context.view.blocksOf(pool.name)];
    const held = all.filter(({ record }) => isHeld(record, family));
    const blocks = held.map((stored) => {
      const { record } = known.past(stored);
      const { node, recalledAt } = record;
      const expected = recalledAt !== undefined && staysWith(record, now) === undefined;
      const recalledNow = recalledAt !== undefined && now - recalledAt < SILENT_MS;
      const recalled = recalledAt !== undefined;
      return { stored, node, used: usedOf(record), recalled, recalledNow, expected };
    });
    const asked = blocksToRecall(blocks, recalls);
    const back = [...blocks.filter(({ expected }) => expected), ...asked].map(({ stored }) => stored.record);
    const coming = back.reduce((sum, block) => sum + usableIn(block), known.coolingIn(pool, family));
    const missing = short.reduce((sum, one) => sum + one.missing, 0);
    for (const { stored } of [...asked, ...blocksToDoubt(blocks, nodes, missing - coming)]) {
      if (mayWrite()) await this.asking(pool, stored, () => recall(this.#context, stored));
    }
    return coming;
  }

  /** What is wrong with one block keeps no owner of another one from being asked. It rests, until its record changes or for a while. */
  async asking(
    pool: Pool,
    { key, uid, revision }: Stored<"block">,
    ask: () => Promise<unknown>,
  ): Promise<void> {
    const one = `${uid} ${revision}`;
    if (this.#rests.isResting(one)) return;
    try {
      await ask();
    } catch (fault) {
      if (isStoreFault(fault)) throw fault;
      const error = messageOf(fault);
      this.#context.log.error("block cannot be asked for", { kind: "block", key, error });
      this.#rests.begin(one);
      this.#of.faults.met(pool, error, { refused: [], untried: [] });
    }
  }
}

/**
 * The end of a pod is known at once, but a node's agent reports only now and then what its blocks are used for. Where addresses are
 * missing, this chooses blocks to ask for although their owners report them as used: on each node no more than it reports in use beyond
 * its pods, and in all no more than are missing. A block that is empty by now comes back at once; for any other, the agent reports its use
 * again. Nodes with the largest surplus come first, and a node that has not answered is asked for no more. Same input, same answer.
 */
function blocksToDoubt<B extends Recallable>(
  blocks: readonly B[],
  nodes: readonly NodeNeed[],
  missing: number,
): readonly B[] {
  const asked = blocks.filter(({ recalledNow, used }) => recalledNow && used > 0);
  let left = missing - usedIn(asked);
  const doubted: B[] = [];
  for (const { open, ended } of nodes
    .map((need) => wordsOf(blocks, need))
    .sort((a, b) => b.ended - a.ended)) {
    let unused = ended;
    for (const block of open) {
      if (left <= 0 || unused <= 0) break;
      doubted.push(block);
      unused -= block.used;
      left -= block.used;
    }
  }
  return doubted;
}

/** A node's blocks in use that it was not asked for, and how many addresses they must be fewer, as it has fewer pods. */
function wordsOf<B extends Recallable>(
  blocks: readonly B[],
  { node, pods, knownPods = pods }: NodeNeed,
): { readonly open: readonly B[]; readonly ended: number } {
  const own = blocks.filter((block) => block.node === node && block.used > 0);
  const open = own.filter(({ recalled }) => !recalled).sort((a, b) => a.used - b.used);
  return { open, ended: usedIn(open) - knownPods };
}

function usedIn(blocks: readonly Recallable[]): number {
  return blocks.reduce((sum, { used }) => sum + used, 0);
}
