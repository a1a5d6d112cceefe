// SPDX-License-Identifier: Apache-2.0
// Many lives, on all processors, in processes of their own: node:test would follow every promise of its own.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Counts, Tally } from "./tally.ts";

/** Runs of one seed; then the next one, so that what is drawn does not depend on how many runs were asked for. */
const RUNS_OF_A_SEED = 40;

/** A life makes much that is over with it: to collect that seldom takes a tenth less of the processor's time. */
const YOUNG = "--max-semi-space-size=64";

export interface Campaign {
  readonly runs: number;
  /** The first; as many follow as there are runs for. */
  readonly seed: number;
  readonly processes: number;
  /** Every second seed is of lives with blocks; absent: none. */
  readonly blocks?: "all" | "half";
  /** Of every third seed some pods ask for addresses of two interfaces, or of each. */
  readonly interfaces?: "all" | "third";
  readonly onSeed?: (seed: number, tally: Tally) => void;
}

export interface Lived {
  readonly tally: Tally;
  /** The first failure that was found, for people; undefined: none. */
  readonly told: string | undefined;
}

/** Whether blocks are single addresses in the lives of a seed: the same whenever it is lived. */
export function hasSingles(seed: number): boolean {
  return seed % 4 === 0;
}

/** What a process is asked to live. */
export interface RunRequest {
  readonly runs: number;
  readonly seed: number;
  readonly blocks: boolean;
  readonly interfaces: boolean;
}

/** What it says of that. */
export interface Said {
  readonly counts: Counts;
  readonly told?: string;
}

/** Until all are lived, or one has failed; those that are under way are waited for. */
export async function live({ runs, seed, processes, blocks, interfaces, onSeed }: Campaign): Promise<Lived> {
  const tally = new Tally();
  let reported: string | undefined;
  let begun = 0;
  const work = async () => {
    // read and compiled once: that takes as long as some forty lives
    const child = fork(join(import.meta.dirname, "batch.ts"), { execArgv: [...process.execArgv, YOUNG] });
    while (reported === undefined && begun * RUNS_OF_A_SEED < runs) {
      const n = begun++;
      const request = {
        runs: Math.min(RUNS_OF_A_SEED, runs - n * RUNS_OF_A_SEED),
        seed: seed + n,
        blocks: blocks === "all" || (blocks === "half" && n % 2 === 1),
        interfaces: interfaces === "all" || (interfaces === "third" && n % 3 === 2),
      };
      const said = await liveSeed(child, request);
      tally.add(said.counts);
      reported ??= said.told;
      onSeed?.(request.seed, tally);
    }
    child.disconnect();
  };
  await Promise.all(Array.from({ length: processes }, work));
  return { tally, told: reported };
}

async function liveSeed(child: ChildProcess, request: RunRequest): Promise<Said> {
  const over = new AbortController();
  const { signal } = over;
  const dead = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`the lives of seed ${request.seed} ended with exit status ${code}`);
  });
  const said = once(child, "message", { signal });
  child.send(request);
  try {
    const [message] = await Promise.race([said, dead]);
    return message as Said;
  } finally {
    over.abort();
    await Promise.allSettled([said, dead]);
  }
}
