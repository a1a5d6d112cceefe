// SPDX-License-Identifier: Apache-2.0
import { runBench } from "../bench/bench.ts";
import type { Figure } from "../bench/figure.ts";
import { readOptions, USAGE } from "../bench/options.ts";
import { measureAdmission } from "./admission.ts";
import { measureAgentMemory } from "./agent-memory.ts";
import { measureAgents } from "./agents.ts";
import { ApiSetup } from "./api-setup.ts";
import { measureBlocks } from "./blocks.ts";
import { measureCreates } from "./creates.ts";
import { measureRecreation } from "./recreation.ts";

/** In the order of the report. */
const FIGURES: Readonly<Record<string, (setup: ApiSetup) => Promise<Figure>>> = {
  creates: measureCreates,
  admission: measureAdmission,
  recreation: measureRecreation,
  blocks: measureBlocks,
  agents: measureAgents,
  "agent-memory": measureAgentMemory,
};

try {
  const options = readOptions(process.argv.slice(2), Object.keys(FIGURES));
  process.exitCode = await runBench({ name: "bench-api", open: ApiSetup.open, figures: FIGURES }, options);
} catch (error) {
  console.error(error instanceof TypeError ? `${error.message}\n${USAGE}` : error);
  process.exitCode = 2;
}
