// SPDX-License-Identifier: Apache-2.0
import { parseArgs } from "node:util";
import { explore } from "./explore.ts";
import { narrate, summarise } from "./report.ts";
import type { Scenario } from "./run.ts";
import { allRaces, CHANGES } from "./scenarios.ts";

const USAGE = `node test/model/main.ts [--racers n] [--states n] [words]

Explores the scenarios, or only those whose titles contain the words, to their ends: those that take
long take hours.
  --racers n  explore the choices of so many racers instead, 1 to 7: seconds for 3, minutes for 4, hours for 5
  --states n  stop each scenario after so many states
Exits with 1 when a rule is broken, after the schedule that breaks it.`;

async function tryAll(scenarios: readonly Scenario[], states: number): Promise<boolean> {
  let total = 0;
  let pendingClaims = true;
  for (const scenario of scenarios) {
    const onProgress = (so: number) => console.error(`  ${so} states so far: ${scenario.title}`);
    const explored = await explore(scenario, { states, onProgress });
    total += explored.states;
    console.log(summarise(explored));
    if (explored.violation === undefined) continue;
    console.log(narrate(explored.violation));
    pendingClaims = false;
  }
  console.log(`${scenarios.length} scenarios, ${total} states`);
  return pendingClaims;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { racers: { type: "string" }, states: { type: "string" }, help: { type: "boolean" } },
});
if (values.help === true) {
  console.log(USAGE);
} else {
  const scenarios = values.racers === undefined ? CHANGES : allRaces(Number(values.racers));
  const chosen = scenarios.filter(({ title }) => title.includes(positionals.join(" ")));
  const states = Number(values.states ?? Number.POSITIVE_INFINITY);
  process.exitCode = (await tryAll(chosen, states)) ? 0 : 1;
}
