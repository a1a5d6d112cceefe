// SPDX-License-Identifier: Apache-2.0
// Runs the simulation for as long as one likes: node main.ts --runs N --seed N [--at A:B:C]
import { parseArgs } from "node:util";
import { Disks } from "./journal-disk.ts";
import { describe, type Failure, trial } from "./property.ts";
import { Tally } from "./tally.ts";

/** Runs of one seed; then the next one, so that what is drawn does not depend on how many runs were asked for. */
const RUNS_OF_A_SEED = 500;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "2000" },
    seed: { type: "string", default: "" },
    at: { type: "string", default: "" },
  },
});

const disks = new Disks();
const tally = new Tally();
const begun = performance.now();

function numberOf(text: string, otherwise: number): number {
  const number = Number(text);
  if (text !== "" && !Number.isSafeInteger(number)) throw new RangeError(`${text} is no whole number`);
  return text === "" ? otherwise : number;
}

function progress(): string {
  const seconds = (performance.now() - begun) / 1_000;
  const rate = (tally.runs / seconds).toFixed(1);
  return `${tally.runs} runs, ${tally.steps} steps, ${tally.events} events, ${rate} runs per second`;
}

async function runAll(runs: number, firstSeed: number): Promise<Failure | undefined> {
  for (let done = 0, seed = firstSeed; done < runs; done += RUNS_OF_A_SEED, seed++) {
    const failure = await trial({ disks, tally, seed, runs: Math.min(RUNS_OF_A_SEED, runs - done) });
    if (failure !== undefined) return failure;
    console.log(`seed ${seed}: ${progress()}`);
  }
  return undefined;
}

const seed = numberOf(values.seed, Math.trunc(performance.timeOrigin % 1e9));
const failure =
  values.at === ""
    ? await runAll(numberOf(values.runs, 0), seed)
    : await trial({ disks, tally, seed, runs: 1, path: values.at });
if (failure === undefined) {
  console.log(tally.lines().join("\n"));
  console.log(`no invariant was broken: ${progress()}`);
} else {
  console.log(await describe(failure, { disks }));
  process.exitCode = 1;
}
disks.close();
