// SPDX-License-Identifier: Apache-2.0
import { SeededRandom } from "../support/random.ts";
import { ACTS } from "./acts.ts";
import { CALM, finish } from "./finale.ts";
import { Violation } from "./invariant-check.ts";
import type { Line } from "./schedule.ts";
import type { Step } from "./steps.ts";
import { World, type WorldOptions } from "./world.ts";

export interface Ran {
  /** The invariant that was broken, in words. */
  readonly violation?: string;
  /** Every line, when it was to be kept. */
  readonly trace: readonly Line[];
}

/** One run: the same steps give the same run, happening for happening. */
export async function simulate(steps: readonly Step[], options: WorldOptions): Promise<Ran> {
  const world = new World(options);
  const trace = world.schedule.trace ?? [];
  world.tally.runs++;
  try {
    await world.flow(CALM);
    for (const step of steps) await take(world, step);
    await finish(world, steps.length % 2 === 0);
    return { trace };
  } catch (error) {
    return { violation: wordsOf(error), trace };
  } finally {
    await world.close();
  }
}

async function take(world: World, step: Step): Promise<void> {
  world.tally.steps++;
  world.tally.note(step.kind, ACTS[step.kind](world, step));
  await world.flow({ ...step, random: new SeededRandom(step.seed) });
}

/** Whatever else is thrown is as wrong as a broken invariant, and it matters where. */
function wordsOf(error: unknown): string {
  if (error instanceof Violation) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
