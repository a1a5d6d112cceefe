// SPDX-License-Identifier: Apache-2.0
import { type Figure, goalTable } from "./figure.ts";
import { describeMachine, loadLine, loadNow, machineLine } from "./machine.ts";
import type { Options } from "./options.ts";
import { type Results, writeResults } from "./results.ts";
import { plainTable } from "./table.ts";
import { Workshop } from "./workshop.ts";

type Figures = Readonly<Record<string, (workshop: Workshop) => Promise<Figure>>>;

/** Makes the figures, prints them, and writes them down. The exit status: 1 when one of them failed to run. */
export async function runBench(figures: Figures, options: Options): Promise<number> {
  const workshop = await Workshop.open(options.quick);
  const interrupted = () => {
    void workshop.close().finally(() => process.exit(130));
  };
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
  try {
    const machine = describeMachine(workshop.folder);
    console.log(`berth bench, ${options.quick ? "quick" : "full"}: ${machineLine(machine)}`);
    if (workshop.hostLocal === undefined) {
      console.log(
        "host-local is not installed: there is nothing to compare with (Debian: containernetworking-plugins)",
      );
    }
    const names = Object.keys(figures).filter((name) => options.only?.includes(name) ?? true);
    const results: Results = { machine, quick: options.quick, at: new Date().toISOString(), figures: [] };
    let failed = 0;
    for (const name of names) {
      const make = figures[name];
      if (make === undefined || !(await makeOne({ name, make, workshop, results }))) failed++;
    }
    const goals = results.figures.flatMap(({ figure }) => figure.goals);
    if (goals.length > 0) console.log(`\n${plainTable(goalTable("to reach", goals))}`);
    for (const path of await writeResults(results)) console.log(`written: ${path}`);
    return failed === 0 ? 0 : 1;
  } finally {
    process.removeListener("SIGINT", interrupted).removeListener("SIGTERM", interrupted);
    await workshop.close();
  }
}

async function makeOne(of: {
  name: string;
  make: (workshop: Workshop) => Promise<Figure>;
  workshop: Workshop;
  results: Results;
}): Promise<boolean> {
  const { name, make, workshop, results } = of;
  const [before, began] = [loadNow(), performance.now()];
  workshop.say(`${name} ...`);
  try {
    const figure = await make(workshop);
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
    await workshop.tidy();
    workshop.say(`${name}: ${Math.round((performance.now() - began) / 1000)} s`);
  }
}
