// SPDX-License-Identifier: Apache-2.0
// main.ts SUITE|GROUP [FILE...]   passes a suite of tests (suites.ts), or these files of it
//   --name PATTERN   only tests whose full name matches
//   --runs SHARE     of the full number of random runs and repetitions, instead of the suite's: 1 is all
//   --watch          stays, and passes again what a changed file is imported by
//   --list           prints the files, and runs nothing
//   --names          prints the names of the tests, and runs nothing
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { filesOf, ROOT } from "./files.ts";
import type { Asked } from "./outcome.ts";
import { isGreen } from "./results.ts";
import { SuiteRun } from "./run.ts";
import { GROUPS, groupNamed, type Part, SUITES } from "./suites.ts";
import { wordsOfUnwritable } from "./unwritable.ts";
import { watch } from "./watch.ts";

/** What was asked for cannot be done. */
class Refused extends Error {}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    name: { type: "string" },
    runs: { type: "string" },
    watch: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    names: { type: "boolean", default: false },
  },
});
const [suite = "", ...named] = positionals;
/** As a shell has it for what SIGINT ended. */
const INTERRUPTED = 130;

try {
  process.exitCode = await main();
} catch (error) {
  const words = error instanceof Refused ? error.message : wordsOfUnwritable(error);
  if (words === undefined) throw error;
  console.error(`${suite}: ${words}`);
  process.exitCode = 1;
}

async function main(): Promise<number> {
  checkAsked();
  if (values.list) {
    for (const { files } of asked()) console.log(files.join("\n"));
    return 0;
  }
  if (values.names) return printNames();
  checkRunHere();
  if (values.watch) {
    await watch(asked, async (some) => {
      const given = await pass(some);
      if (!given.isInterrupted) console.log("\nwaiting for a file to change; Ctrl-C ends");
      return given;
    });
    return INTERRUPTED;
  }
  return (await pass(asked())).isGreen ? 0 : 1;
}

function asked(): readonly Asked[] {
  return partsOf(suite)
    .map(({ group: name, runs, isBeside = false }) => {
      const group = groupNamed(name);
      const files = filesOf(group).filter((file) => named.length === 0 || named.includes(file));
      const share = values.runs === undefined ? runs : Number(values.runs);
      return { group, files, runs: share, name: values.name, isBeside };
    })
    .filter(({ files }) => files.length > 0);
}

/** A run without the tests, or the runs of them, that were asked for would look green. */
function checkAsked(): void {
  if (values.runs !== undefined && !(Number(values.runs) > 0))
    throw new Refused(`--runs ${values.runs} is no share: 0.1 is a tenth, 1 is all`);
  if (values.name === "") throw new Refused("--name has no pattern");
  try {
    RegExp(values.name ?? "");
  } catch (error) {
    throw new Refused(`--name: ${error instanceof Error ? error.message : error}`);
  }
  const all = asked();
  const absent = named.filter((file) => !all.some(({ files }) => files.includes(file)));
  if (absent.length > 0) throw new Refused(`it has no file of tests called ${absent.join(", ")}`);
}

function partsOf(name: string): readonly Part[] {
  const parts =
    SUITES[name] ?? (GROUPS.some((group) => group.name === name) ? [{ group: name, runs: 1 }] : []);
  if (parts.length > 0) return parts;
  const known = [...Object.keys(SUITES), ...GROUPS.map((group) => group.name)];
  throw new Refused(`there is no suite named "${name}"; there are ${[...new Set(known)].join(", ")}`);
}

/** Where its files need what another program makes, they would run on whatever is there: somebody's own cluster. */
function checkRunHere(): void {
  for (const { group } of asked())
    if (group.by !== undefined)
      throw new Refused(`its files are run by ${group.by} [FILE...] [--name PATTERN]`);
}

function printNames(): number {
  const module = join(import.meta.dirname, "names.ts");
  const files = asked().flatMap((one) => one.files);
  const how = ["--import", module, "--test", "--test-isolation=none", `--test-reporter=${module}`];
  return spawnSync(process.execPath, [...how, ...files], { cwd: ROOT, stdio: "inherit" }).status ?? 1;
}

/** What is run at the same time, in its turn. */
function atATime(all: readonly Asked[]): readonly (readonly Asked[])[] {
  const turns: Asked[][] = [];
  for (const one of all) {
    const last = turns.at(-1);
    if (one.isBeside === true && last !== undefined) last.push(one);
    else turns.push([one]);
  }
  return turns;
}

async function pass(all: readonly Asked[]) {
  const run = new SuiteRun(suite, process.env);
  const interrupt = (signal: NodeJS.Signals) => run.interrupt(signal);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  for (const some of atATime(all)) await run.pass(...some);
  const { summary, text } = await run.finish();
  console.log(text);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, interrupt);
  return { isGreen: isGreen(summary), isInterrupted: run.isInterrupted };
}
