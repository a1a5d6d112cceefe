// SPDX-License-Identifier: Apache-2.0
import type { Command } from "./command.ts";
import { withHelp } from "./flags.ts";
import { columns } from "./output.ts";

const EXIT_CODES = [
  "Exit codes: 0 done, 1 refused or defects found, 2 called wrongly or not possible.",
  "",
].join("\n");

/** `berthctl --help` */
export function overview(commands: readonly Command[]): string {
  return [
    "berthctl looks after fixed IP addresses of pods: pools, claims and who has what.",
    "",
    "Usage: berthctl COMMAND [flags]     (or: kubectl berth COMMAND [flags])",
    "",
    "Commands:",
    columns(commands.map(({ name, summary }) => [`  ${name}`, summary])),
    "The data folder is --data DIR, else $BERTH_DATA, else /var/lib/berth for root and",
    "~/.local/share/berth for others.",
    "",
    "Examples:",
    "  berthctl up --data ./berth            (leave it running, and in another terminal:)",
    "  berthctl apply -f pools.yaml --data ./berth",
    "  berthctl who 10.20.0.51 --data ./berth",
    "",
    "berthctl COMMAND --help tells more of a command.",
    EXIT_CODES,
  ].join("\n");
}

/** `berthctl COMMAND --help` */
export function helpOf(command: Command): string {
  const flags = Object.entries(withHelp(command.flags)).map(([name, { short, value, about }]) => {
    const spelling = `${short === undefined ? "    " : `-${short}, `}--${name}`;
    return [`  ${spelling}${value === undefined ? "" : ` ${value}`}`, about];
  });
  return [
    `${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.`,
    "",
    ...command.usage.map((line, i) => `${i === 0 ? "Usage:" : "      "} berthctl ${line}`),
    "",
    "Flags:",
    columns(flags),
    "Examples:",
    ...command.examples.map((example) => `  ${example}`),
    "",
    EXIT_CODES,
  ].join("\n");
}
