// SPDX-License-Identifier: Apache-2.0
import { measureAdd } from "./add.ts";
import { runBench } from "./bench.ts";
import type { Figure } from "./figure.ts";
import { measureMemory } from "./memory.ts";
import { readOptions, USAGE } from "./options.ts";
import { measureParallel } from "./parallel.ts";
import { measurePicking } from "./picking.ts";
import { measureReviews } from "./reviews.ts";
import { StackSetup } from "./stack-setup.ts";
import { measureStart } from "./start.ts";

/** In the order of the report. */
const FIGURES: Readonly<Record<string, (setup: StackSetup) => Promise<Figure>>> = {
  add: measureAdd,
  parallel: measureParallel,
  reviews: measureReviews,
  picking: measurePicking,
  start: measureStart,
  memory: measureMemory,
};

try {
  const options = readOptions(process.argv.slice(2), Object.keys(FIGURES));
  process.exitCode = await runBench({ name: "bench", open: StackSetup.open, figures: FIGURES }, options);
} catch (error) {
  console.error(error instanceof TypeError ? `${error.message}\n${USAGE}` : error);
  process.exitCode = 2;
}
