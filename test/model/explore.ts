// SPDX-License-Identifier: Apache-2.0
import type { Said } from "./process.ts";
import { brokenForGood } from "./repair.ts";
import { Run, type Scenario, type Stage, stageOf } from "./run.ts";
import { shrink } from "./shrink.ts";
import { booksKey, stateKey } from "./state-key.ts";

/** A schedule that breaks a rule: whose step comes when, what was said, and which rule. */
export interface Violation {
  readonly words: string;
  readonly schedule: readonly number[];
  readonly said: readonly Said[];
}

export interface Explored {
  readonly title: string;
  readonly states: number;
  /** Runs from the beginning, for it is the only way to come back to a state. */
  readonly runs: number;
  /** Steps of the longest schedule. */
  readonly deepest: number;
  /** States in which every process had ended. */
  readonly ends: number;
  /** States in which a process was left out because it had slept too often. */
  readonly cut: number;
  /** False when the bound was reached. */
  readonly whole: boolean;
  readonly ms: number;
  readonly violation?: Violation;
}

export interface Bounds {
  /** Stop after that many states. */
  readonly states?: number;
  /** Hears how far it has come, every now and then. */
  readonly onProgress?: (states: number) => void;
}

const EVERY_STATES = 20_000;

/**
 * Walks every interleaving of a scenario's processes. The processes are real code, which cannot be copied in the
 * middle, so a state is reached again by running its schedule from the beginning; each state is gone on from once.
 */
export async function explore(scenario: Scenario, bounds: Bounds = {}): Promise<Explored> {
  const begun = performance.now();
  const explorer = new Explorer(stageOf(scenario), bounds);
  const found = await explorer.walk();
  const violation = found && (await tell(explorer.stage, found));
  const { states, runs, deepest, ends, cut, whole } = explorer;
  const counts = { states: states.size, runs, deepest, ends, cut, whole };
  const ms = Math.round(performance.now() - begun);
  return { title: scenario.title, ...counts, ms, ...(violation === undefined ? {} : { violation }) };
}

class Explorer {
  readonly stage: Stage;
  readonly states = new Set<string>();
  readonly #repaired = new Set<string>(); // books that were seen to come clean
  readonly #bounds: Bounds;
  runs = 0;
  deepest = 0;
  ends = 0;
  cut = 0;
  whole = true;

  constructor(stage: Stage, bounds: Bounds) {
    this.stage = stage;
    this.#bounds = bounds;
  }

  /** The first schedule after which a rule is broken. */
  async walk(): Promise<readonly number[] | undefined> {
    const open: (readonly number[])[] = [[]];
    for (let prefix = open.pop(); prefix !== undefined; prefix = open.pop()) {
      if (this.states.size >= (this.#bounds.states ?? Number.POSITIVE_INFINITY)) {
        this.whole = false;
        return undefined;
      }
      const broken = await this.#follow(prefix, open);
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  /** Runs a schedule and goes on along states not seen before; the turns not taken are put down as open. */
  async #follow(prefix: readonly number[], open: (readonly number[])[]): Promise<readonly number[] | undefined> {
    const run = new Run(this.stage);
    this.runs++;
    for (const i of prefix) await run.step(i);
    const schedule = [...prefix];
    while (this.#isNew(run)) {
      if ((await this.#brokenWords(run)) !== undefined) return schedule;
      const [next, ...others] = this.#turns(run, schedule.at(-1));
      if (next === undefined) break;
      for (const other of others) open.push([...schedule, other]);
      await run.step(next);
      schedule.push(next);
    }
    this.deepest = Math.max(this.deepest, schedule.length);
    return undefined;
  }

  #isNew(run: Run): boolean {
    const key = stateKey(run);
    if (this.states.has(key)) return false;
    this.states.add(key);
    if (this.states.size % EVERY_STATES === 0) this.#bounds.onProgress?.(this.states.size);
    return true;
  }

  async #brokenWords(run: Run): Promise<string | undefined> {
    const words = run.broken();
    if (words !== undefined) return words;
    if (process.env["NOREPAIR"]) return undefined;
    const books = booksKey(run.harbour);
    if (this.#repaired.has(books)) return undefined;
    this.#repaired.add(books);
    return await brokenForGood(run.harbour);
  }

  /** Whoever went last goes on first, so that the schedules that are found read well. */
  #turns(run: Run, last: number | undefined): number[] {
    const enabled = run.enabled();
    if (enabled.length === 0 && run.cut === 0) this.ends++;
    if (run.cut > 0) this.cut++;
    return last !== undefined && enabled.includes(last)
      ? [last, ...enabled.filter((i) => i !== last)]
      : enabled;
  }
}

/** What is wrong after the schedule; steps that cannot be taken are passed over. */
async function replay(stage: Stage, schedule: readonly number[]): Promise<Violation | undefined> {
  const run = new Run(stage);
  const taken: number[] = [];
  const said: Said[] = [];
  for (const i of schedule) {
    if (!run.enabled().includes(i)) continue;
    said.push(await run.step(i));
    taken.push(i);
    const words = run.broken();
    if (words !== undefined) return { words, schedule: taken, said };
  }
  if (process.env["NOREPAIR"]) return undefined;
  const words = await brokenForGood(run.harbour);
  return words === undefined ? undefined : { words, schedule: taken, said };
}

async function tell(stage: Stage, schedule: readonly number[]): Promise<Violation> {
  const least = await shrink(schedule, async (shorter) => (await replay(stage, shorter)) !== undefined);
  const violation = await replay(stage, least);
  if (violation === undefined) throw new Error(`scenario "${stage.scenario.title}" does not repeat itself`);
  return violation;
}
