// SPDX-License-Identifier: Apache-2.0
// Runs the simulation for as long as one likes: node main.ts --runs N --seed N [--processes N] [--at A:B:C] [--blocks all|half] [--interfaces all]
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Disks } from "./journal-disk.ts";
import { hasSingles, live } from "./parallel-runs.ts";
import { describe, trial } from "./property.ts";
import { Tally } from "./tally.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "2000" },
    seed: { type: "string", default: "" },
    processes: { type: "string", default: "" },
    at: { type: "string", default: "" },
    blocks: { type: "string", default: "" },
    interfaces: { type: "string", default: "" },
  },
});

const begun = performance.now();

function numberOf(text: string, otherwise: number): number {
  const number = Number(text);
  if (text !== "" && !Number.isSafeInteger(number)) throw new RangeError(`${text} is no whole number`);
  return text === "" ? otherwise : number;
}

function progress(tally: Tally): string {
  const seconds = (performance.now() - begun) / 1_000;
  const rate = (tally.runs / seconds).toFixed(1);
  return `${tally.runs} runs, ${tally.steps} steps, ${tally.events} events, ${rate} runs per second`;
}

/** The life that a failure told of, once more. */
async function liveAgain(seed: number, path: string, tally: Tally): Promise<string | undefined> {
  const disks = new Disks();
  const [blocks, interfaces] = [values.blocks !== "", values.interfaces !== ""];
  const singles = hasSingles(seed);
  const failure = await trial({ disks, tally, seed, runs: 1, path, blocks, singles, interfaces });
  const reported = failure && (await describe(failure, { disks, blocks, singles, interfaces }));
  disks.close();
  return reported;
}

const seed = numberOf(values.seed, Math.trunc(performance.timeOrigin % 1e9));
const again = new Tally();
const { tally, told: reported } =
  values.at === ""
    ? await live({
        runs: numberOf(values.runs, 0),
        seed,
        processes: numberOf(values.processes, availableParallelism()),
        ...(values.blocks === "" ? {} : { blocks: values.blocks === "half" ? "half" : "all" }),
        ...(values.interfaces === "" ? {} : { interfaces: "all" }),
        onSeed: (done, soFar) => console.log(`seed ${done}: ${progress(soFar)}`),
      })
    : { tally: again, told: await liveAgain(seed, values.at, again) };
if (reported === undefined) {
  console.log(tally.lines().join("\n"));
  console.log(`no invariant was broken: ${progress(tally)}`);
} else {
  console.log(reported);
  process.exitCode = 1;
}
