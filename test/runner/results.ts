// SPDX-License-Identifier: Apache-2.0
// What a run of tests gave, and the words for it at its end. Pure.

import { readable } from "./messages.ts";

export interface Counts {
  readonly tests: number;
  readonly suites: number;
  readonly passed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly skipped: number;
  readonly todo: number;
}

/** Why tests were skipped, in the words of the tests, and how many for that. */
export interface SkipReason {
  readonly why: string;
  readonly tests: number;
}

export interface FileTime {
  readonly file: string;
  readonly seconds: number;
  /** Of the processor; absent where the file shared its process with others. */
  readonly cpuSeconds?: number;
}

export interface Failure {
  readonly file: string;
  /** Of the test and of what it is in, outermost first; empty when the file failed as a whole. */
  readonly path: readonly string[];
  readonly message: string;
  /** The command that runs it alone. */
  readonly again: string;
  /** How many tests were not run, or not to their end, because of it. */
  readonly cancelled: number;
}

/** `incomplete`: nothing failed, but there was not the time for all of it. */
export type Verdict = "passed" | "failed" | "incomplete";

/** A line of suites.jsonl. */
export interface Summary extends Counts {
  readonly suite: string;
  readonly verdict: Verdict;
  readonly seconds: number;
  /** Of all processes that it started and waited for. */
  readonly cpuSeconds: number;
  readonly slowest: readonly FileTime[];
  readonly failures: readonly Failure[];
  /** What the run left behind, or could not do: each is a reason to fail. */
  readonly complaints: readonly string[];
  /** Files that there was no time for. */
  readonly leftOut: readonly string[];
  /** The commonest first. */
  readonly skippedFor: readonly SkipReason[];
}

export const NOTHING: Counts = {
  tests: 0,
  suites: 0,
  passed: 0,
  failed: 0,
  cancelled: 0,
  skipped: 0,
  todo: 0,
};

export function add(a: Counts, b: Counts): Counts {
  return {
    tests: a.tests + b.tests,
    suites: a.suites + b.suites,
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    cancelled: a.cancelled + b.cancelled,
    skipped: a.skipped + b.skipped,
    todo: a.todo + b.todo,
  };
}

const SLOWEST = 10;
/** Of the failures that are repeated; all of them are in failures.txt. */
const SHOWN = 5;
/** Of a message: the two values of an assertion too. */
const MESSAGE_LINES = 8;
const LONGEST_LINE = 600;

/** The ten files that took longest; one that ran several times counts with all of them. */
export function slowest(times: readonly FileTime[]): readonly FileTime[] {
  const sums = new Map<string, FileTime>();
  for (const time of times) sums.set(time.file, sumOf(time, sums.get(time.file)));
  return [...sums.values()].sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
}

function sumOf(one: FileTime, other: FileTime | undefined): FileTime {
  if (other === undefined) return one;
  const seconds = one.seconds + other.seconds;
  const cpu = [one.cpuSeconds, other.cpuSeconds].filter((each) => each !== undefined);
  return {
    file: one.file,
    seconds,
    ...(cpu.length > 0 && { cpuSeconds: cpu.reduce((sum, each) => sum + each) }),
  };
}

/** The same reasons once, the commonest first. */
export function skipReasons(reasons: readonly SkipReason[]): readonly SkipReason[] {
  const sums = new Map<string, number>();
  for (const { why, tests } of reasons) sums.set(why, (sums.get(why) ?? 0) + tests);
  return [...sums].map(([why, tests]) => ({ why, tests })).sort((a, b) => b.tests - a.tests);
}

type Given = Pick<Summary, "failed" | "cancelled" | "complaints" | "failures" | "passed" | "leftOut">;

export function verdictOf({ failed, cancelled, complaints, failures, passed, leftOut }: Given): Verdict {
  // a hook that fails after the last test is a failure that no test counts
  if (failed + cancelled + complaints.length + failures.length > 0) return "failed";
  if (leftOut.length > 0) return "incomplete";
  return passed > 0 ? "passed" : "failed";
}

export function isGreen({ verdict }: Pick<Summary, "verdict">): boolean {
  return verdict === "passed";
}

/** What and where, why, and how to run it alone. */
export function wordsOf({ file, path, message, again, cancelled }: Failure): readonly string[] {
  const where = path.length === 0 ? file : `${file}: ${path.join(" › ")}`;
  const tests = cancelled === 1 ? "1 test was" : `${cancelled} tests were`;
  const others = cancelled === 0 ? [] : [`  ${tests} not run because of it`];
  return [where, ...firstLines(message).map((line) => `  ${line}`), ...others, `  again: ${again}`];
}

function firstLines(message: string): readonly string[] {
  return readable(message, MESSAGE_LINES)
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line));
}

function verdictWords({ verdict, tests, leftOut }: Summary): string {
  if (verdict === "passed") return "passed";
  if (verdict === "failed") return "FAILED";
  const files = leftOut.length === 1 ? "1 file was" : `${leftOut.length} files were`;
  return `NOT ${tests === 0 ? "RUN" : "WHOLE"}: ${files} left out`;
}

/** The last lines of a run. They end as those of node's own runner do, which tools read. */
export function ending(summary: Summary, whereAll: string): string {
  const { suite, slowest: files, failures, complaints, leftOut, skippedFor, seconds, cpuSeconds } = summary;
  const lines = [`slowest files of ${suite}:`];
  for (const { file, seconds: s, cpuSeconds: cpu } of files)
    lines.push(
      `${s.toFixed(1).padStart(8)} s  ${file}${cpu === undefined ? "" : `, ${cpu.toFixed(1)} s of CPU`}`,
    );
  if (failures.length > 0)
    lines.push("", `failed in ${suite}:`, ...failures.slice(0, SHOWN).flatMap(wordsOf));
  if (failures.length > SHOWN) lines.push(`and ${failures.length - SHOWN} more, all in ${whereAll}`);
  if (complaints.length > 0) lines.push("", `wrong after ${suite}:`, ...complaints);
  if (leftOut.length > 0) lines.push("", `left out of ${suite}, as its time was over:`, ...leftOut);
  if (skippedFor.length > 0)
    lines.push(
      "",
      `skipped in ${suite}:`,
      ...skippedFor.map(({ why, tests }) => `${String(tests).padStart(8)}  ${why}`),
    );
  lines.push("", `${suite}: ${verdictWords(summary)}, ${cpuSeconds.toFixed(1)} s of CPU`);
  const numbers = {
    tests: summary.tests,
    suites: summary.suites,
    pass: summary.passed,
    fail: summary.failed,
    cancelled: summary.cancelled,
    skipped: summary.skipped,
    todo: summary.todo,
    duration_ms: Math.round(seconds * 1000),
  };
  for (const [name, value] of Object.entries(numbers)) lines.push(`ℹ ${name} ${value}`);
  return lines.join("\n");
}
