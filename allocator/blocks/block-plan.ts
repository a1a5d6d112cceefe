// SPDX-License-Identifier: Apache-2.0

/** A node that may have blocks of the pool, and how many pods on it need an address of the family. */
export interface NodeNeed {
  readonly node: string;
  readonly nodeUID: string;
  readonly pods: number;
  /** How many of them somebody has seen: the others are what the node's agent says beyond. `pods`, if it is not known. */
  readonly knownPods?: number;
  /** Addresses of its blocks that cool, so far as somebody has seen that pods had them: it can give none of them now. */
  readonly cooling?: number;
}

/** What a node has. */
export interface Holding {
  readonly node: string;
  /** Addresses that the block's owner may give. */
  readonly usable: number;
  /**
   * Why it does not come back whole. `used`: its owner says that sandboxes have addresses of it, so single ones of it may come instead
   * (`single-plan.ts`). `silent`: it was asked for some while ago, and its owner has not answered.
   */
  readonly stays?: "used" | "silent";
  /** Its owner has not said yet that it has it: `new`, or for some while. Absent: it has, or it is not asked. */
  readonly unproven?: "new" | "silent";
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
  /** Addresses of blocks that cool, and not for long: nobody is asked for as many. */
  readonly cooling: number;
  /** How many blocks more than its pods need each node has, as long as there is plenty. */
  readonly ahead: number;
}

export interface BlockPlan {
  /** One block for each entry, in this order. */
  readonly grants: readonly NodeNeed[];
  /** Nodes that are asked for an empty block, because others have too few. */
  readonly recalls: readonly { readonly node: string; readonly blocks: number }[];
  /** Nodes whose pods need more addresses than there are blocks left for. */
  readonly short: readonly { readonly node: string; readonly missing: number }[];
}

/** So many blocks a node gets before its agent says that it has them, and twice as many as it has said that of. */
const UNPROVEN = 4;

/**
 * Who gets a block, and who is asked for one. A node whose agent does not say that it has what it was given gets no more, however
 * many pods somebody makes for it. Need comes before foresight: blocks ahead are given only while one remains for each
 * node that has none, and never while a node's pods lack addresses. What cools is made up for while a block is free, but
 * nobody is asked for one. Same situation in, same plan out; carried out, it plans nothing more.
 */
export function planBlocks(situation: PoolSituation): BlockPlan {
  const nodes = situation.nodes.map((need) => new NodeShare(need, situation));
  const spread = new Spread(situation.total - BigInt(situation.held.length), nodes);
  spread.rounds((share) => share.lacks);
  const short = nodes.flatMap((share) =>
    share.lacks ? [{ node: share.need.node, missing: share.missing }] : [],
  );
  if (short.length > 0) return { grants: spread.grants, recalls: recallsFor(nodes, situation), short };
  spread.rounds((share) => share.mayGet && share.waitsForCooling);
  for (let level = 1; level <= situation.ahead; level++) {
    const wants = (share: NodeShare) => share.mayGet && share.spare < level * situation.size;
    spread.rounds((share) => wants(share) && spread.leavesOneForEach(share));
  }
  return { grants: spread.grants, recalls: [], short };
}

/** The nodes have them as well: single ones are no blocks of the pool's size, and none the fewer are free. */
export function withSingles(situation: PoolSituation, owners: readonly string[]): PoolSituation {
  const held = owners.map((node) => ({ node, usable: 1 }));
  return {
    ...situation,
    total: situation.total + BigInt(held.length),
    held: [...situation.held, ...held],
  };
}

/** What a node has, and will have by the plan. */
class NodeShare {
  readonly need: NodeNeed;
  /** Blocks that it was asked for, without an answer. */
  readonly silent: number;
  readonly #size: number;
  readonly #own: readonly number[]; // addresses of each block that it has and may give back whole, fewest first
  #blocks: number;
  #usable: number;
  /** So many blocks it may get now. */
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

  /**
   * Its pods have to be served by what cools, too. Not by what its agent says is in use beyond its pods: it may have said that before
   * those ended whose addresses cool.
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

  /** Addresses that its pods lack, as far as it may get them now. */
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
  /** It was asked for a moment ago. */
  readonly recalledNow: boolean;
  /** It was asked for, and may come back any moment. */
  readonly expected: boolean;
}

/**
 * Which blocks their owners are asked for, no more than are not expected already: none of which they say that it is in use. It would not
 * come, and whoever waits for one after the other waits for as long as there are blocks.
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
 * Those who have most to spare are asked first, each for whole blocks only, and nobody for what its pods need. Those who were asked and
 * gave nothing come after all others: a node without power must not keep them from being asked.
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
