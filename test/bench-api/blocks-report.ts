// SPDX-License-Identifier: Apache-2.0
import { type Calls, inWords } from "../api/chaos-calls.ts";
import { atMost, type Figure } from "../bench/figure.ts";
import { formatFixed, formatNumber } from "../bench/number-format.ts";

/** Something that was done to many blocks. */
export interface Phase {
  readonly what: string;
  readonly blocks: number;
  readonly ms: number;
  readonly calls: Calls;
}

export interface BlocksMeasured {
  readonly nodes: number;
  /** On each node. */
  readonly pods: number;
  readonly blocks: number;
  readonly phases: readonly Phase[];
  /** Blocks that overlap another one. */
  readonly doubles: number;
  /** Blocks that are still there at the end. */
  readonly left: number;
}

/** A fixed pod's identity costs two writes and a read when it is new, and a write when it is bound. */
const FIXED_CALLS = 4;
const two = (value: number) => formatFixed(value, 2);

export function reportBlocks(measured: BlocksMeasured): Figure {
  const { nodes, pods, phases, doubles, left } = measured;
  const rows = phases.map(({ what, blocks, ms, calls }) => [
    what,
    formatFixed(blocks, 0),
    formatNumber(blocks / (ms / 1_000)),
    two(countOf(calls) / blocks),
    inWords(calls),
  ]);
  const perPod = phases.reduce((sum, { calls }) => sum + countOf(calls), 0) / (nodes * pods);
  const title = `Blocks of one /12 for ${formatFixed(nodes, 0)} nodes with ${pods} pods each`;
  return {
    name: "api-blocks",
    title,
    tables: [{ title, headings: ["blocks", "how many", "in a second", "API calls for each", "calls"], rows }],
    plots: [],
    goals: [
      atMost("blocks that overlap another one", 0, doubles, String),
      atMost("blocks that are left when all were given back", 0, left, String),
      atMost(
        `API calls for each pod of its node's blocks, whole lives (a fixed pod: ${FIXED_CALLS})`,
        1,
        perPod,
        two,
      ),
    ],
    data: { ...measured, perPod },
  };
}

function countOf(calls: Calls): number {
  const rows = Object.entries(calls).filter(([what]) => !what.startsWith("WATCH"));
  return rows.reduce((sum, [, count]) => sum + count, 0);
}
