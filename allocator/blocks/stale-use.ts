// SPDX-License-Identifier: Apache-2.0
import type { NodeNeed, Recallable } from "./block-plan.ts";

/**
 * That pods have ended is known at once; what a node's blocks are used for its agent says now and then only. Which blocks that are used by
 * their owners' word are asked for all the same, where addresses are missing: no more than more addresses are said to be used than the node
 * has pods, and no more at a time than are missing. What is empty by now comes back at once, and of the others it is said what is used of them. Those of whom most is said in vain
 * come first, and a node that has not answered is asked for no more. Same input, same answer.
 */
export function blocksToDoubt<B extends Recallable>(
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
