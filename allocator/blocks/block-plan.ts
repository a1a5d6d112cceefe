// SPDX-License-Identifier: Apache-2.0

/** A node that may be given blocks of the pool, and how many of its pods need an address of the family. */
export interface NodeNeed {
  readonly node: string;
  readonly nodeUID: string;
  readonly pods: number;
  /** How many of these pods were seen; the others are addresses in use that the node's agent reports beyond them. Absent: all of them. */
  readonly knownPods?: number;
  /** Addresses of its blocks that cool after pods that were seen had them: the node cannot give them to other pods yet. */
  readonly cooling?: number;
}

/** A block that a node has. */
export interface Holding {
  readonly node: string;
  /** Addresses that the block's owner may give. */
  readonly usable: number;
  /**
   * Why the node will not give it back whole. `used`: the node says that sandboxes have addresses of it, and may be asked for single ones
   * instead (`single-plan.ts`). `silent`: the node was asked for it some while ago and has not answered.
   */
  readonly stays?: "used" | "silent";
  /**
   * The node's agent has not confirmed yet that it has the block: it was granted just now (`new`), or some while ago. Absent: confirmed,
   * or nothing has to be.
   */
  readonly unproven?: "new" | "silent";
}

/** The blocks of one family of a pool. */
export interface PoolSituation {
  /** How many blocks there are in the pool. */
  readonly total: bigint;
  /** Addresses of a block that has no holes. */
  readonly size: number;
  /** Every block that is not free: those of nodes, and those that cool, which no node has. */
  readonly held: readonly (Holding | "cooling")[];
  readonly nodes: readonly NodeNeed[];
  /** Addresses of blocks that will have cooled soon: nodes are asked for that many fewer. */
  readonly cooling: number;
  /** How many blocks beyond what its pods need each node is given while there are enough for all. */
  readonly ahead: number;
}

export interface BlockPlan {
  /** One block for each entry, in this order. */
  readonly grants: readonly NodeNeed[];
  /** Nodes that are asked to give back empty blocks, because others have too few, and how many. */
  readonly recalls: readonly { readonly node: string; readonly blocks: number }[];
  /** Nodes whose pods need more addresses than there are blocks left for. */
  readonly short: readonly { readonly node: string; readonly missing: number }[];
}

/** A node may have this many unconfirmed blocks, or twice as many as its agent has confirmed, if that is more. */
const UNPROVEN = 4;

/**
 * Who gets a block, and who is asked to give one back.
 *
 * - A node whose agent does not confirm the blocks that it was granted gets no more, however many pods are made for it.
 * - Pods that lack an address come first: a block ahead is granted only while no node's pods lack addresses, and only if a block
 *   remains for each node that has none.
 * - For addresses that cool a node is granted another block if one is free; no other node is asked for one.
 *
 * The same situation gives the same plan, and once that is carried out the next plan is empty.
 */
export function planBlocks(situation: PoolSituation): BlockPlan {
  const nodes = situation.nodes.map((need) => new NodeShare(need, situation));
  const grants = new BlockGrants(situation.total - BigInt(situation.held.length), nodes);
  grants.inTurn((share) => share.lacks);
  const short = nodes.flatMap((share) =>
    share.lacks ? [{ node: share.need.node, missing: share.missing }] : [],
  );
  if (short.length > 0) return { grants: grants.all, recalls: recallsFor(nodes, situation), short };
  grants.inTurn((share) => share.mayGet && share.waitsForCooling);
  for (let level = 1; level <= situation.ahead; level++) {
    const wants = (share: NodeShare) => share.mayGet && share.spare < level * situation.size;
    grants.inTurn((share) => wants(share) && grants.leavesOneForEach(share));
  }
  return { grants: grants.all, recalls: [], short };
}

/**
 * The same situation with the single addresses that nodes own. They are no blocks of the pool's size, so as many blocks are free as
 * before.
 */
export function withSingles(situation: PoolSituation, owners: readonly string[]): PoolSituation {
  const held = owners.map((node) => ({ node, usable: 1 }));
  return {
    ...situation,
    total: situation.total + BigInt(held.length),
    held: [...situation.held, ...held],
  };
}

/** What a node has, with what the plan grants it so far. */
class NodeShare {
  readonly need: NodeNeed;
  /** How many blocks it was asked for and has not answered about. */
  readonly silent: number;
  readonly #size: number;
  readonly #own: readonly number[]; // addresses of each block that it has and may give back whole, fewest first
  #blocks: number;
  #usable: number;
  /** How many more blocks it may be granted now. */
  #room: number;

  constructor(need: NodeNeed, { held, size }: PoolSituation) {
    const own = held.filter((block): block is Holding => block !== "cooling" && block.node === need.node);
    this.need = need;
    this.#size = size;
    this.#blocks = own.length;
    const open = own.filter(({ stays }) => stays === undefined);
    this.silent = own.filter(({ stays }) => stays === "silent").length;
    this.#own = open.map(({ usable }) => usable).sort((a, b) => a - b);
    this.#usable = own.reduce((sum, block) => sum + block.usable, 0);
    this.#room = roomFor(own);
  }

  /** How many whole blocks its pods do not need. They are counted one by one: a block at the end of a range has fewer addresses. */
  get blocksToSpare(): number {
    let left = this.spare;
    return this.#own.filter((usable) => {
      left -= usable;
      return left >= 0;
    }).length;
  }

  /** How many addresses it has beyond what its pods need; negative: how many they lack. */
  get spare(): number {
    return this.#usable - this.need.pods;
  }

  /**
   * Some of its pods have to wait for addresses that cool. Addresses in use that its agent reports beyond its pods may be
   * the cooling ones, reported before their pods ended: they are not counted twice.
   */
  get waitsForCooling(): boolean {
    const { pods, knownPods = pods, cooling = 0 } = this.need;
    return knownPods > 0 && this.#usable - Math.max(knownPods, pods - cooling) < cooling;
  }

  get mayGet(): boolean {
    return this.#room > 0;
  }

  get lacks(): boolean {
    return this.spare < 0 && this.mayGet;
  }

  /** How many addresses its pods lack, no more than it may be granted now. */
  get missing(): number {
    return Math.min(-this.spare, this.#room * this.#size);
  }

  get isWithout(): boolean {
    return this.#blocks === 0;
  }

  add(): void {
    this.#room--;
    this.#blocks++;
    this.#usable += this.#size;
  }
}

function roomFor(own: readonly Holding[]): number {
  const unproven = own.filter((block) => block.unproven !== undefined);
  if (unproven.length === 0) return Number.POSITIVE_INFINITY;
  if (unproven.some((block) => block.unproven === "silent")) return 0;
  return Math.max(0, Math.max(UNPROVEN, 2 * (own.length - unproven.length)) - unproven.length);
}

/** Grants free blocks to nodes, in rounds. */
class BlockGrants {
  readonly all: NodeNeed[] = [];
  readonly #nodes: readonly NodeShare[];
  #free: bigint;

  constructor(free: bigint, nodes: readonly NodeShare[]) {
    this.#free = free;
    this.#nodes = nodes;
  }

  /** Grants one block to each node in turn, as long as a node wants one and one is free. */
  inTurn(wants: (share: NodeShare) => boolean): void {
    for (let gave = true; gave; ) {
      gave = false;
      for (const share of this.#nodes) {
        if (this.#free <= 0n || !wants(share)) continue;
        this.#free -= 1n;
        this.all.push(share.need);
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

/** What decides whether a block is asked back. */
export interface Recallable {
  readonly node: string;
  /** How many of its addresses the node last said that sandboxes have. */
  readonly used: number;
  readonly recalled: boolean;
  /** It was asked for a moment ago. */
  readonly recalledNow: boolean;
  /** It was asked for, and may come back any moment. */
  readonly expected: boolean;
}

/**
 * Which blocks their nodes are asked for: as many as the plan says, less those that are expected already. A block of which the node says
 * that addresses are in use is not asked for: it would not come, and asking for one such block after the other would take for ever.
 */
export function blocksToRecall<B extends Recallable>(
  blocks: readonly B[],
  recalls: BlockPlan["recalls"],
): readonly B[] {
  return recalls.flatMap(({ node, blocks: count }) => {
    const own = blocks.filter((block) => block.node === node);
    const open = own.filter(({ recalled, used }) => !recalled && used === 0);
    const expected = own.filter((block) => block.expected).length;
    return open.slice(0, Math.max(0, count - expected));
  });
}

/**
 * Nodes with most to spare are asked first, for whole blocks that their pods do not need. Nodes that were asked and gave nothing come
 * last: a node that is switched off must not keep the others from being asked.
 */
function recallsFor(
  nodes: readonly NodeShare[],
  { size, cooling }: Pick<PoolSituation, "size" | "cooling">,
): BlockPlan["recalls"] {
  let [missing, left] = [0, cooling];
  for (const share of nodes.filter(({ lacks }) => lacks)) {
    const comes = Math.min(left, share.missing);
    left -= comes;
    missing += Math.ceil((share.missing - comes) / size);
  }
  const recalls: { node: string; blocks: number }[] = [];
  const order = nodes.toSorted((a, b) => a.silent - b.silent || b.spare - a.spare);
  for (const { need, blocksToSpare } of order) {
    const blocks = Math.min(blocksToSpare, missing);
    if (blocks <= 0) continue;
    recalls.push({ node: need.node, blocks });
    missing -= blocks;
  }
  return recalls;
}
