// SPDX-License-Identifier: Apache-2.0
import type { Said } from "./process.ts";
import { brokenForGood } from "./repair.ts";
import { Run, type Scenario, type Stage, stageOf } from "./run.ts";
import { shrink } from "./shrink.ts";
import { recordsKey, stateKey } from "./state-key.ts";

/** Whose turn it is at each step, by the place in the scenario. */
export type Schedule = readonly number[];

/** A schedule that breaks a rule: whose step comes when, what was said, and which rule. */
export interface Violation {
  readonly words: string;
  readonly schedule: Schedule;
  readonly said: readonly Said[];
}

export interface Explored {
  readonly title: string;
  readonly states: number;
  /** Different contents of the records among them, each of which was left to the garbage collector once. */
  readonly records: number;
  /** Runs from the beginning, for it is the only way to come back to a state. */
  readonly runs: number;
  /** Steps of the longest schedule. */
  readonly deepest: number;
  /** States in which every process had ended. */
  readonly ends: number;
  /** False when the bound was reached. */
  readonly whole: boolean;
  readonly ms: number;
  readonly violation?: Violation;
}

export interface Bounds {
  /** Stop after that many states. */
  readonly states?: number;
  /** Look at so many states for a shorter schedule than the one that was found, before that is shrunk. */
  readonly wide?: number;
  /** Hears how far it has come, every now and then. */
  readonly onProgress?: (states: number) => void;
}

const EVERY_STATES = 20_000;
/** Beyond that no shorter schedule is looked for than the one that was found, shrunk. */
const WIDE_STATES = 50_000;

/**
 * Walks every interleaving of a scenario's processes. The processes are real code, which cannot be copied in the
 * middle, so a state is reached again by running its schedule from the beginning; each state is gone on from once.
 */
export async function explore(scenario: Scenario, bounds: Bounds = {}): Promise<Explored> {
  const begun = performance.now();
  const explorer = new Explorer(stageOf(scenario), bounds);
  const found = await explorer.walkDeep();
  const violation = found && (await tell(explorer.stage, found, bounds.wide ?? WIDE_STATES));
  const { states, records, runs, deepest, ends, whole } = explorer;
  const counts = { states: states.size, records: records.size, runs, deepest, ends, whole };
  const ms = Math.round(performance.now() - begun);
  return { title: scenario.title, ...counts, ms, ...(violation === undefined ? {} : { violation }) };
}

class Explorer {
  readonly stage: Stage;
  readonly states = new Set<string>();
  readonly records = new Set<string>(); // keys of those that were seen to come clean
  readonly #bounds: Bounds;
  runs = 0;
  deepest = 0;
  ends = 0;
  whole = true;

  constructor(stage: Stage, bounds: Bounds) {
    this.stage = stage;
    this.#bounds = bounds;
  }

  /** The first schedule after which a rule is broken. Goes on as far as it can before it comes back. */
  async walkDeep(): Promise<Schedule | undefined> {
    const open: Schedule[] = [[]];
    for (let prefix = open.pop(); prefix !== undefined; prefix = open.pop()) {
      if (this.#isEnough()) return undefined;
      const { run, schedule } = await this.#begin(prefix);
      while (this.#isNew(run)) {
        if ((await this.#brokenWords(run)) !== undefined) return schedule;
        const [next, ...others] = this.#turns(run, schedule.at(-1));
        if (next === undefined) break;
        for (const other of others) open.push([...schedule, other]);
        await run.step(next);
        schedule.push(next);
      }
      this.deepest = Math.max(this.deepest, schedule.length);
    }
    return undefined;
  }

  /** The same, shortest schedules first: slower, for each step is a run of its own. */
  async walkWide(): Promise<Schedule | undefined> {
    const open: Schedule[] = [[]];
    for (const prefix of open) {
      if (this.#isEnough()) return undefined;
      const { run, schedule } = await this.#begin(prefix);
      if (!this.#isNew(run)) continue;
      if ((await this.#brokenWords(run)) !== undefined) return schedule;
      for (const turn of this.#turns(run, schedule.at(-1))) open.push([...schedule, turn]);
    }
    return undefined;
  }

  #isEnough(): boolean {
    this.whole = this.states.size < (this.#bounds.states ?? Number.POSITIVE_INFINITY);
    return !this.whole;
  }

  async #begin(prefix: Schedule): Promise<{ run: Run; schedule: number[] }> {
    const run = new Run(this.stage);
    this.runs++;
    for (const i of prefix) await run.step(i);
    return { run, schedule: [...prefix] };
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
    const auditInput = recordsKey(run.state);
    if (this.records.has(auditInput)) return undefined;
    this.records.add(auditInput);
    return await brokenForGood(run.state);
  }

  /** Whoever went last goes on first, so that the schedules that are found read well. */
  #turns(run: Run, last: number | undefined): number[] {
    const enabled = run.enabled();
    if (enabled.length === 0) this.ends++;
    return last !== undefined && enabled.includes(last)
      ? [last, ...enabled.filter((i) => i !== last)]
      : enabled;
  }
}

/** What is wrong after the schedule; steps that cannot be taken are passed over. */
async function replay(stage: Stage, schedule: Schedule): Promise<Violation | undefined> {
  const run = new Run(stage);
  const taken: number[] = [];
  const said: Said[] = [];
  for (const i of schedule) {
    if (!run.enabled().includes(i)) continue;
    said.push((await run.step(i))());
    taken.push(i);
    const words = run.broken();
    if (words !== undefined) return { words, schedule: taken, said };
  }
  const words = await brokenForGood(run.state);
  return words === undefined ? undefined : { words, schedule: taken, said };
}

/** The shortest one that can be found in reasonable time. */
async function tell(stage: Stage, schedule: Schedule, wide: number): Promise<Violation> {
  const shortest = await new Explorer(stage, { states: wide }).walkWide();
  const pendingClaims = async (shorter: Schedule) => (await replay(stage, shorter)) !== undefined;
  const violation = await replay(stage, await shrink(shortest ?? schedule, pendingClaims));
  if (violation === undefined) throw new Error(`scenario "${stage.scenario.title}" does not repeat itself`);
  return violation;
}
