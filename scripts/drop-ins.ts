// SPDX-License-Identifier: Apache-2.0
// node scripts/drop-ins.ts           prints docs/drop-ins.md as it must be
// node scripts/drop-ins.ts --write   writes it
import { readFileSync, writeFileSync } from "node:fs";
import { DROP_INS, type DropInRow } from "../ipam-plugin/cni/drop-ins.ts";

const FILE = new URL("../docs/drop-ins.md", import.meta.url);
const BEGIN = "<!-- configurations: node scripts/drop-ins.ts --write -->";
const END = "<!-- end of configurations -->";

/** The document with the table of configurations as the code has it. */
export function withDropIns(text: string): string {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`docs/drop-ins.md has no ${BEGIN} ... ${END}`);
  const rows = [
    "| type | its `ipam`, as its documents show it | what a pod gets |",
    "|---|---|---|",
    ...DROP_INS.map(rowOf),
  ];
  return `${text.slice(0, from)}${BEGIN}\n\n${rows.join("\n")}\n\n${text.slice(to)}`;
}

function rowOf({ type, example, means }: DropInRow): string {
  return `| \`${type}\` | \`${JSON.stringify({ type, ...example })}\` | ${means} |`;
}

if (import.meta.main) {
  const written = withDropIns(readFileSync(FILE, "utf8"));
  if (process.argv.includes("--write")) writeFileSync(FILE, written);
  else process.stdout.write(written);
}
