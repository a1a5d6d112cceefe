// SPDX-License-Identifier: Apache-2.0
import type { NodeNeed, Recallable } from "./block-plan.ts";

/**
 * The end of a pod is known at once, but a node's agent reports only now and then what its blocks are used for. Where addresses are
 * missing, this chooses blocks to ask for although their owners report them as used: on each node no more than it reports in use beyond
 * its pods, and in all no more than are missing. A block that is empty by now comes back at once; for any other, the agent reports its use
 * again. Nodes with the largest surplus come first, and a node that has not answered is asked for no more. Same input, same answer.
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
