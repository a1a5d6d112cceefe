// SPDX-License-Identifier: Apache-2.0
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run, start } from "../support/process.ts";

const SOURCE = fileURLToPath(new URL("./driver.c", import.meta.url));
const BUILD = fileURLToPath(new URL("../../build", import.meta.url));
const FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wshadow", "-O2"];

/** One program to run. */
export interface Run {
  /** Groups the results; no tabs. */
  readonly tag: string;
  readonly program: string;
  /** A file for its stdin. */
  readonly input: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A run, or: so many of the following runs at once, after the earlier ones have ended. */
export type Step = Run | { readonly parallel: number };

export interface Timed {
  readonly tag: string;
  /** CLOCK_MONOTONIC, in milliseconds. */
  readonly startMs: number;
  readonly endMs: number;
  /** From before posix_spawn until after waitpid. */
  readonly ms: number;
  readonly printed: string;
}

/** Brings build/bench-driver up to date with its source. Throws what the compiler says. */
export async function buildDriver(): Promise<string> {
  const program = join(BUILD, "bench-driver");
  const [made, source] = await Promise.all([modifiedAt(program), modifiedAt(SOURCE)]);
  if (made !== undefined && source !== undefined && made > source) return program;
  const { rc, stderr } = await run("cc", [...FLAGS, "-o", program, SOURCE], {
    env: { PATH: "/usr/bin:/bin" },
  });
  if (rc !== 0) throw new Error(`driver.c does not compile:\n${stderr}`);
  return program;
}

async function modifiedAt(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch {
    return undefined;
  }
}

/** Carries out the steps and answers with the runs in their order. Throws when one of them did not succeed. */
export async function drive(driver: string, steps: readonly Step[]): Promise<readonly Timed[]> {
  const { rc, stdout, stderr } = await start(driver, [], { stdin: { text: steps.map(lineOf).join("") } })
    .ended;
  if (rc !== 0) throw new Error(`the driver ended with ${rc}: ${stderr}`);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map(readLine);
}

function lineOf(step: Step): string {
  if ("parallel" in step) return `parallel\t${step.parallel}\n`;
  const env = Object.entries(step.env).map(([name, value]) => `${name}=${value}`);
  return `${["run", step.tag, step.program, step.input, ...env].join("\t")}\n`;
}

function readLine(line: string): Timed {
  const [tag = "", startNs = "", endNs = "", status = "", printed = ""] = line.split("\t");
  if (status !== "0") throw new Error(`${tag} ended with ${status}: ${printed}`);
  const [startMs, endMs] = [Number(startNs) / 1e6, Number(endNs) / 1e6];
  return { tag, startMs, endMs, ms: Number(BigInt(endNs) - BigInt(startNs)) / 1e6, printed };
}

/** Milliseconds of each run, by tag, in the order of the runs. */
export function byTag(results: readonly Timed[]): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>(); // tag -> milliseconds
  for (const { tag, ms } of results) {
    const of = found.get(tag) ?? [];
    found.set(tag, of);
    of.push(ms);
  }
  return found;
}
