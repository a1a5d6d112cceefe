// SPDX-License-Identifier: Apache-2.0
import type { Line } from "./schedule.ts";
import type { Step } from "./steps.ts";

/** News that changed nothing for whoever hears it: most lines, and least of the story. */
const TOLD_QUIETLY = /^(hears news of|wakes after)/;

/** The story of a run, a line for each step: when, who, what, and what came of it. */
export function traceOf(lines: readonly Line[]): string[] {
  const reported = lines.filter(({ what, outcome }) => outcome !== "" || !TOLD_QUIETLY.test(what));
  return reported.map(({ at, who, what, outcome }) => {
    const time = `${(at / 1_000).toFixed(3)} s`.padStart(12);
    return `${time}  ${who.padEnd(10)}  ${what}${outcome === "" ? "" : `  ->  ${outcome}`}`;
  });
}

/** What fast-check drew, for whoever wants to see where the story comes from. */
export function tellSteps(steps: readonly Step[]): string[] {
  return steps.map(({ kind, a, b, events, order, trouble, seed }, i) => {
    const fares = trouble === 0 ? "well" : `badly (${trouble}, seed ${seed})`;
    return `${String(i + 1).padStart(4)}. ${kind} ${a},${b}; then ${events} in order "${order}", ${fares}`;
  });
}
