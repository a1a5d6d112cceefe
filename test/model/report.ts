// SPDX-License-Identifier: Apache-2.0
import type { Explored, Violation } from "./explore.ts";

/** One line: what was explored, and how it came out. */
export function summarise(explored: Explored): string {
  const { title, states, records, runs, deepest, ends, whole, ms, violation } = explored;
  const outcome = violation !== undefined ? "VIOLATION" : whole ? "holds" : "holds so far";
  const counts = `${states} states, ${records} contents, ${runs} runs, ${ends} ends, up to ${deepest} steps, ${ms} ms`;
  return `${outcome}: ${title}: ${counts}`;
}

/** The schedule, a line a step, with who does what and what he is told; then the rule that is broken. */
export function narrate({ words, said }: Violation): string {
  const width = Math.max(0, ...said.map(({ process }) => process.length));
  const lines = said.map(({ process, call, answer }, i) => {
    const reported = answer === "" ? "" : ` -> ${answer}`;
    return `${String(i + 1).padStart(3)}  ${process.padEnd(width)}  ${call}${reported}`;
  });
  return [...lines, `then: ${words}`].join("\n");
}
