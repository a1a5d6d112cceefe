// SPDX-License-Identifier: Apache-2.0

/** A node that may have blocks of the pool, and how many pods on it need an address of the family. */
export interface NodeNeed {
  readonly node: string;
  readonly nodeUID: string;
  readonly pods: number;
}

/** What a node has. */
export interface Holding {
  readonly node: string;
  /** Addresses that the block's owner may give. */
  readonly usable: number;
  /** It was asked for some while ago and did not come: somebody uses it, or its owner does not answer. */
  readonly overdue?: boolean;
}

/** The blocks of one family of a pool. */
export interface PoolSituation {
  /** How many blocks there are in the pool. */
  readonly total: bigint;
  /** Addresses of a block that has no holes. */
  readonly size: number;
  /** Every block that anybody has; one that cools is nobody's, and not free either. */
  readonly held: readonly (Holding | "cooling")[];
  readonly nodes: readonly NodeNeed[];
}

export interface BlockPlan {
  /** One block for each entry, in this order. */
  readonly grants: readonly NodeNeed[];
  /** Nodes that are asked for an empty block, because others have too few. */
  readonly recalls: readonly { readonly node: string; readonly blocks: number }[];
  /** Nodes whose pods need more addresses than there are blocks left for. */
  readonly short: readonly { readonly node: string; readonly missing: number }[];
}

/** A node has so many blocks more than its pods need: the next one is there before the last one is full. */
export const BLOCKS_AHEAD = 2;

/**
 * Who gets a block, and who is asked for one. Need comes before foresight: blocks ahead are given only while one remains for each
 * node that has none, and never while a node's pods lack addresses. Same situation in, same plan out; carried out, it plans
 * nothing more.
 */
export function planBlocks(situation: PoolSituation): BlockPlan {
  const nodes = situation.nodes.map((need) => new NodeShare(need, situation));
  const spread = new Spread(situation.total - BigInt(situation.held.length), nodes);
  spread.rounds((share) => share.lacks);
  const short = nodes.flatMap((share) =>
    share.lacks ? [{ node: share.need.node, missing: -share.spare }] : [],
  );
  if (short.length > 0) return { grants: spread.grants, recalls: recallsFor(nodes, situation.size), short };
  for (let level = 1; level <= BLOCKS_AHEAD; level++) {
    spread.rounds((share) => share.spare < level * situation.size && spread.leavesOneForEach(share));
  }
  return { grants: spread.grants, recalls: [], short };
}

/** What a node has, and will have by the plan. */
class NodeShare {
  readonly need: NodeNeed;
  /** Blocks that it was asked for and has not given back. */
  readonly overdue: number;
  readonly #size: number;
  readonly #own: readonly number[]; // addresses of each block that it has and may give back, fewest first
  #blocks: number;
  #usable: number;

  constructor(need: NodeNeed, { held, size }: PoolSituation) {
    const own = held.filter((block): block is Holding => block !== "cooling" && block.node === need.node);
    this.need = need;
    this.#size = size;
    this.#blocks = own.length;
    const open = own.filter(({ overdue }) => overdue !== true);
    this.overdue = own.length - open.length;
    this.#own = open.map(({ usable }) => usable).sort((a, b) => a - b);
    this.#usable = own.reduce((sum, block) => sum + block.usable, 0);
  }

  /** So many blocks it can do without: those at the ends of ranges have fewer addresses than others. */
  get blocksToSpare(): number {
    let left = this.spare;
    return this.#own.filter((usable) => {
      left -= usable;
      return left >= 0;
    }).length;
  }

  /** Addresses beyond what its pods need; below zero, so many are missing. */
  get spare(): number {
    return this.#usable - this.need.pods;
  }

  get lacks(): boolean {
    return this.spare < 0;
  }

  get isWithout(): boolean {
    return this.#blocks === 0;
  }

  add(): void {
    this.#blocks++;
    this.#usable += this.#size;
  }
}

class Spread {
  readonly grants: NodeNeed[] = [];
  readonly #nodes: readonly NodeShare[];
  #free: bigint;

  constructor(free: bigint, nodes: readonly NodeShare[]) {
    this.#free = free;
    this.#nodes = nodes;
  }

  /** One block for each node in turn, as long as it wants one and there is one. */
  rounds(wants: (share: NodeShare) => boolean): void {
    for (let gave = true; gave; ) {
      gave = false;
      for (const share of this.#nodes) {
        if (this.#free <= 0n || !wants(share)) continue;
        this.#free -= 1n;
        this.grants.push(share.need);
        share.add();
        gave = true;
      }
    }
  }

  leavesOneForEach(share: NodeShare): boolean {
    const without = this.#nodes.filter((other) => other !== share && other.isWithout).length;
    return this.#free > BigInt(without);
  }
}

/** A block as far as it may be asked back. */
export interface Recallable {
  readonly node: string;
  /** Addresses that its owner's sandboxes have, so far as it said. */
  readonly used: number;
  readonly recalled: boolean;
  /** It was asked for, and may come back any moment. */
  readonly expected: boolean;
}

/** Which blocks their owners are asked for: those that are used least, and no more than are not expected already. */
export function blocksToRecall<B extends Recallable>(
  blocks: readonly B[],
  recalls: BlockPlan["recalls"],
): readonly B[] {
  return recalls.flatMap(({ node, blocks: count }) => {
    const own = blocks.filter((block) => block.node === node);
    const open = own.filter(({ recalled }) => !recalled).toSorted((a, b) => a.used - b.used);
    const expected = own.filter((block) => block.expected).length;
    return open.slice(0, Math.max(0, count - expected));
  });
}

/**
 * Those who have most to spare are asked first, each for whole blocks only, and nobody for what its pods need. Those who were asked and
 * gave nothing come after all others: a node without power must not keep them from being asked.
 */
function recallsFor(nodes: readonly NodeShare[], size: number): BlockPlan["recalls"] {
  let missing = nodes.reduce((sum, share) => sum + (share.lacks ? Math.ceil(-share.spare / size) : 0), 0);
  const recalls: { node: string; blocks: number }[] = [];
  const order = nodes.toSorted((a, b) => a.overdue - b.overdue || b.spare - a.spare);
  for (const { need, blocksToSpare } of order) {
    const blocks = Math.min(blocksToSpare, missing);
    if (blocks <= 0) continue;
    recalls.push({ node: need.node, blocks });
    missing -= blocks;
  }
  return recalls;
}
