// SPDX-License-Identifier: Apache-2.0
// run.ts [FILE...]: passes the cases on the cluster that is up, or on one that comes and goes with this run.
//   --name PATTERN             only those whose full name matches
//   BERTH_CASES=ci             those that fit into a gate's time; what is left out is said by name
//   USE_EXISTING_CLUSTER=true  the cluster of KUBECONFIG, in which Berth runs already
import { globSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../runner/files.ts";
import { isGreen } from "../runner/results.ts";
import { SuiteRun } from "../runner/run.ts";
import { groupNamed } from "../runner/suites.ts";
import { installBerth } from "./berth.ts";
import { isExternal } from "./cases.ts";
import { Cluster } from "./cluster.ts";
import { Lab } from "./lab.ts";
import { withLock } from "./lock.ts";
import { POOLS } from "./objects.ts";
import { StateFolder } from "./state.ts";

/** By name, before Berth is installed: their cases install it as the documents say. */
const FIRST = ["node-cidrs.cluster-test.ts", "readme.cluster-test.ts"];
/** What switches things off comes late, load last. */
const ORDER = [
  "requests",
  "refusals",
  "lives",
  "blocks",
  "block-choice",
  "attachments",
  "interfaces",
  "absences",
  "etcd-secret",
  "certificates",
  "power",
  "startup",
];

const { values, positionals } = parseArgs({ allowPositionals: true, options: { name: { type: "string" } } });
const state = StateFolder.of(process.env);
const cluster = new Cluster(state);
const external = isExternal();
const wasUp = external || cluster.isUp;
const started = performance.now();
const say = (what: string) =>
  console.error(`${((performance.now() - started) / 1000).toFixed(1)} s: ${what}`);
// its nodes outlive single files; what is left of it is said when it is taken down
// a run that is interrupted takes its cluster down all the same
const run = new SuiteRun("cluster-test", process.env, { isMarked: false });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => run.interrupt("SIGINT"));
try {
  await passAll(positionals);
} catch (error) {
  run.complain(error instanceof Error ? error.message : String(error));
}
if (!wasUp) await takeDown();
const { summary, text } = await run.finish();
console.log(text);
process.exitCode = isGreen(summary) ? 0 : 1;

async function passAll(named: readonly string[]): Promise<void> {
  if (!wasUp) await withLock(state, async () => await bringUp());
  const files = named.length > 0 ? named : all();
  const before = FIRST.flatMap((name) => files.filter((file) => basename(file) === name));
  if (!external) await pass(before);
  if (run.isInterrupted) return;
  if (!external) {
    await installBerth(cluster);
    say("Berth is installed");
  }
  await Lab.prepare(POOLS);
  const rest = files.filter((file) => external || !before.includes(file));
  await pass(rest);
}

async function bringUp(): Promise<void> {
  if (state.exists) await cluster.down();
  await cluster.up(say);
}

/** Runs each file in a process of its own, in that order. */
async function pass(files: readonly string[]): Promise<void> {
  const group = groupNamed("cluster");
  for (const file of files)
    await run.pass({ group, files: [relative(ROOT, resolve(file))], runs: 1, name: values.name });
}

function all(): readonly string[] {
  const place = (file: string) => ORDER.findIndex((name) => file.startsWith(`${name}.`));
  const files = globSync("*.cluster-test.ts", { cwd: import.meta.dirname });
  return files.sort((a, b) => place(a) - place(b)).map((file) => join(import.meta.dirname, file));
}

async function takeDown(): Promise<void> {
  const left = await withLock(state, () => cluster.down());
  for (const what of left) run.complain(`left behind: ${what}`);
}
