// SPDX-License-Identifier: Apache-2.0
// Many lives, on all processors. Each process has the lives of one seed: node:test would follow every promise of its own.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Counts, Tally } from "./tally.ts";

/** Runs of one seed; then the next one, so that what is drawn does not depend on how many runs were asked for. */
const RUNS_OF_A_SEED = 100;

export interface Campaign {
  readonly runs: number;
  /** The first; as many follow as there are runs for. */
  readonly seed: number;
  readonly processes: number;
  readonly onSeed?: (seed: number, tally: Tally) => void;
}

export interface Lived {
  readonly tally: Tally;
  /** The first failure that was found, for people; undefined: none. */
  readonly told: string | undefined;
}

/** What a process of one seed says at its end. */
interface Said {
  readonly counts: Counts;
  readonly told?: string;
}

/** Until all are lived, or one has failed; those that are under way are waited for. */
export async function live({ runs, seed, processes, onSeed }: Campaign): Promise<Lived> {
  const tally = new Tally();
  let told: string | undefined;
  let begun = 0;
  const work = async () => {
    while (told === undefined && begun * RUNS_OF_A_SEED < runs) {
      const n = begun++;
      const said = await liveSeed(Math.min(RUNS_OF_A_SEED, runs - n * RUNS_OF_A_SEED), seed + n);
      tally.add(said.counts);
      told ??= said.told;
      onSeed?.(seed + n, tally);
    }
  };
  await Promise.all(Array.from({ length: processes }, work));
  return { tally, told };
}

async function liveSeed(runs: number, seed: number): Promise<Said> {
  const child = fork(join(import.meta.dirname, "batch.ts"), [String(runs), String(seed)]);
  let said: Said | undefined;
  child.on("message", (message) => {
    said = message as Said;
  });
  const [code] = await once(child, "exit");
  if (said === undefined) throw new Error(`the lives of seed ${seed} ended with exit status ${code}`);
  return said;
}
