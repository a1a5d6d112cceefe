// SPDX-License-Identifier: Apache-2.0
import { type Figure, goalTable } from "./figure.ts";
import { describeMachine, loadLine, loadNow, machineLine } from "./machine.ts";
import type { Options } from "./options.ts";
import { type Results, writeResults } from "./results.ts";
import { plainTable } from "./table.ts";

/** Where figures are made, and everything that has to be ended afterwards. */
export interface BenchSetup {
  /** On the disk that is written to. */
  readonly folder: string;
  /** What is missing here, in words; one line each. */
  readonly lacks: readonly string[];
  /** Progress, for whoever waits. */
  say(words: string): void;
  /** Ends what a figure started. */
  tidy(): Promise<void>;
  close(): Promise<void>;
}

/** One bench: its name is that of its files in build/. */
export interface Bench<S extends BenchSetup> {
  readonly name: string;
  readonly open: (quick: boolean) => Promise<S>;
  /** In the order of the report. */
  readonly figures: Readonly<Record<string, (setup: S) => Promise<Figure>>>;
}

/** Makes the figures, prints them, and writes them down. The exit status: 1 when one of them failed to run. */
export async function runBench<S extends BenchSetup>(bench: Bench<S>, options: Options): Promise<number> {
  const { figures } = bench;
  const setup = await bench.open(options.quick);
  const interrupted = () => {
    void setup.close().finally(() => process.exit(130));
  };
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
  try {
    const machine = describeMachine(setup.folder);
    console.log(`berth ${bench.name}, ${options.quick ? "quick" : "full"}: ${machineLine(machine)}`);
    for (const words of setup.lacks) console.log(words);
    const names = Object.keys(figures).filter((name) => options.only?.includes(name) ?? true);
    const results: Results = { machine, quick: options.quick, at: new Date().toISOString(), figures: [] };
    let failed = 0;
    for (const name of names) {
      const make = figures[name];
      if (make === undefined || !(await makeOne({ name, make, setup, results }))) failed++;
    }
    const goals = results.figures.flatMap(({ figure }) => figure.goals);
    if (goals.length > 0) console.log(`\n${plainTable(goalTable("to reach", goals))}`);
    for (const path of await writeResults(results, bench.name)) console.log(`written: ${path}`);
    return failed === 0 ? 0 : 1;
  } finally {
    process.removeListener("SIGINT", interrupted).removeListener("SIGTERM", interrupted);
    await setup.close();
  }
}

async function makeOne<S extends BenchSetup>(of: {
  name: string;
  make: (setup: S) => Promise<Figure>;
  setup: S;
  results: Results;
}): Promise<boolean> {
  const { name, make, setup, results } = of;
  const [before, began] = [loadNow(), performance.now()];
  setup.say(`${name} ...`);
  try {
    const figure = await make(setup);
    const after = loadNow();
    results.figures.push({ figure, load: { before, after } });
    console.log(`\n${figure.title}; ${loadLine(before, after)}`);
    for (const table of figure.tables) console.log(plainTable(table));
    return true;
  } catch (error) {
    console.log(
      `\n${name} failed to run: ${error instanceof Error ? (error.stack ?? error.message) : error}`,
    );
    return false;
  } finally {
    await setup.tidy();
    setup.say(`${name}: ${Math.round((performance.now() - began) / 1000)} s`);
  }
}
