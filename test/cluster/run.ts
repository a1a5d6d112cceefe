// SPDX-License-Identifier: Apache-2.0
// run.ts [FILE...]: passes the cases on the cluster that is up, or on one that comes and goes with this run.
//   BERTH_CASES=ci             those that fit into a gate's time; what is left out is said by name
//   USE_EXISTING_CLUSTER=true  the cluster of KUBECONFIG, in which Berth runs already
import { spawn } from "node:child_process";
import { existsSync, globSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { installBerth } from "./berth.ts";
import { isExternal } from "./cases.ts";
import { Cluster } from "./cluster.ts";
import { Lab } from "./lab.ts";
import { withLock } from "./lock.ts";
import { POOLS } from "./objects.ts";
import { StateFolder } from "./state.ts";

/** By name, before Berth is installed: its cases install it as the README says. */
const FIRST = "readme.cluster-test.ts";
/** What switches things off comes late, load last. */
const ORDER = ["requests", "refusals", "lives", "absences", "certificates", "power", "startup"];
const REPORTER = join(import.meta.dirname, "failures-reporter.ts");

const state = StateFolder.of(process.env);
const cluster = new Cluster(state);
const external = isExternal();
const wasUp = external || cluster.isUp;
const started = performance.now();
const say = (what: string) =>
  console.error(`${((performance.now() - started) / 1000).toFixed(1)} s: ${what}`);
// a run that is interrupted takes its cluster down all the same
let tests: ReturnType<typeof spawn> | undefined;
let failures = "";
let isInterrupted = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    isInterrupted = true;
    tests?.kill("SIGINT");
  });
}
try {
  process.exitCode = await passAll(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
if (!wasUp) await takeDown();
if (failures !== "") console.error(`\nfailed:\n${failures}`);

/** The exit status of the tests. */
async function passAll(named: readonly string[]): Promise<number> {
  if (!wasUp) await withLock(state, async () => await bringUp());
  const files = named.length > 0 ? named : all();
  const before = files.filter((file) => basename(file) === FIRST);
  const first = external ? 0 : await pass(before);
  if (isInterrupted) return 1;
  if (!external) {
    await installBerth(cluster);
    say("Berth is installed");
  }
  await Lab.prepare(POOLS);
  const rest = files.filter((file) => external || !before.includes(file));
  return Math.max(first, await pass(rest));
}

async function bringUp(): Promise<void> {
  if (state.exists) await cluster.down();
  await cluster.up(say);
}

/** Runs each file in a process of its own, in that order; gives the highest exit status. */
async function pass(files: readonly string[]): Promise<number> {
  let worst = 0;
  const kept = join(tmpdir(), `berth-failures-${process.pid}`);
  for (const file of files) {
    if (isInterrupted) return 1;
    const child = spawn(process.execPath, ["--test", ...reporters(kept), file], { stdio: "inherit" });
    tests = child;
    const status = await new Promise<number>((resolve) => {
      child.once("error", () => resolve(1));
      child.once("exit", (code) => resolve(code ?? 1));
    });
    worst = Math.max(worst, status);
    if (existsSync(kept)) failures += readFileSync(kept, "utf8");
    rmSync(kept, { force: true });
  }
  return worst;
}

/** What a person reads as it comes, and what failed, kept for the end. */
function reporters(kept: string): readonly string[] {
  const reporter = (which: string, to: string) => [
    `--test-reporter=${which}`,
    `--test-reporter-destination=${to}`,
  ];
  return [...reporter("spec", "stdout"), ...reporter(REPORTER, kept)];
}

function all(): readonly string[] {
  const place = (file: string) => ORDER.findIndex((name) => file.startsWith(`${name}.`));
  const files = globSync("*.cluster-test.ts", { cwd: import.meta.dirname });
  return files.sort((a, b) => place(a) - place(b)).map((file) => join(import.meta.dirname, file));
}

async function takeDown(): Promise<void> {
  const left = await withLock(state, () => cluster.down());
  for (const what of left) console.error(`left behind: ${what}`);
  if (left.length > 0) process.exitCode = 1;
}
