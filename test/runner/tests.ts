// SPDX-License-Identifier: Apache-2.0
// One run of node's test runner over some files: what it is started with, and what it gave.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ROOT } from "./files.ts";
import type { FailureRecord, RunRecord } from "./record.ts";
import { type Counts, type Failure, type FileTime, NOTHING } from "./results.ts";
import type { Group } from "./suites.ts";

export interface Asked {
  readonly group: Group;
  readonly files: readonly string[];
  /** The share of random runs and repetitions. */
  readonly runs: number;
  /** Only tests whose full name matches. */
  readonly name?: string | undefined;
}

export interface Surroundings {
  /** The environment of every process. */
  readonly env: NodeJS.ProcessEnv;
  /** Where the reporter writes. */
  readonly records: string;
  /** Whether what it prints is shown. */
  readonly output: "inherit" | "ignore";
  /** Called with the process, which leads a session of its own. */
  readonly started: (child: ChildProcess) => void;
  /** Milliseconds since 1970: what is under way then is ended, and left out. Absent: there is time. */
  readonly deadline?: number | undefined;
}

export interface Outcome {
  readonly counts: Counts;
  readonly times: readonly FileTime[];
  readonly failures: readonly Failure[];
  /** Why the runner itself failed although no test did. */
  readonly complaint?: string;
  /** Files that were not through at the deadline. */
  readonly leftOut: readonly string[];
}

const NODE = "node_modules/.bin/node";

export async function runTests(
  asked: Asked,
  { env, records, output, started, deadline }: Surroundings,
): Promise<Outcome> {
  const { group, files, runs } = asked;
  const child = spawn(process.execPath, argumentsFor(asked, records), {
    cwd: ROOT,
    env: { ...env, ...group.env, BERTH_RUNS: String(runs) },
    stdio: ["ignore", output, output],
    // a session of its own, by which its processes are known when they have no environment
    detached: true,
  });
  started(child);
  const cutOff = endAt(child, deadline);
  const status = await new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(signal ?? String(code)));
  });
  const isCutOff = cutOff();
  const outcome = outcomeOf(readRecords(records), asked, isCutOff);
  const isExplained = status === "0" || isCutOff || outcome.failures.length > 0;
  const which = files.length === 1 ? files[0] : `${files.length} files`;
  return isExplained ? outcome : { ...outcome, complaint: `tests of ${which} ended with ${status}` };
}

/** Node's runner ends the tests of its files by itself when it is interrupted; what does not heed it is killed. */
const HEED_MS = 10_000;
/** The longest that a timer of Node.js takes. */
const LONGEST_MS = 2 ** 31 - 1;

/** Ends the run at the deadline; what it gives says, once the run is over, whether that happened. */
function endAt(child: ChildProcess, deadline: number | undefined): () => boolean {
  if (deadline === undefined) return () => false;
  let isCutOff = false;
  let kill: NodeJS.Timeout | undefined;
  const interrupt = setTimeout(
    () => {
      isCutOff = true;
      child.kill("SIGINT");
      kill = setTimeout(() => child.kill("SIGKILL"), HEED_MS);
    },
    Math.min(Math.max(deadline - Date.now(), 0), LONGEST_MS),
  );
  return () => {
    clearTimeout(interrupt);
    clearTimeout(kill);
    return isCutOff;
  };
}

function argumentsFor({ group, files, name }: Asked, records: string): readonly string[] {
  const reporter = (file: string, to: string) => [
    `--test-reporter=${join(import.meta.dirname, file)}`,
    `--test-reporter-destination=${to}`,
  ];
  return [
    ...(group.nodeArgs ?? []),
    "--test",
    `--test-isolation=${group.isolation}`,
    `--test-concurrency=${group.concurrency ?? 1}`,
    ...(group.timeoutMs === undefined ? [] : [`--test-timeout=${group.timeoutMs}`]),
    ...(group.globalSetup === undefined ? [] : [`--test-global-setup=${join(ROOT, group.globalSetup)}`]),
    ...(name === undefined ? [] : [`--test-name-pattern=${name}`]),
    ...reporter("progress.ts", "stdout"),
    ...reporter("record.ts", records),
    ...files,
  ];
}

/** None: the runner did not come as far as that. */
function readRecords(file: string): readonly RunRecord[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line): RunRecord => JSON.parse(line));
}

function outcomeOf(records: readonly RunRecord[], asked: Asked, isCutOff: boolean): Outcome {
  const ends = records.filter((record) => record.kind === "end");
  const times = records.filter((record) => record.kind === "file");
  // what failed by itself comes first
  const failures = records
    .filter((record) => record.kind === "failure")
    .sort((a, b) => Number(a.isCancelled) - Number(b.isCancelled));
  const all = failures.map((record) => ({ record, failure: failureOf(record, asked) }));
  const isWholeFile = ({ record, failure }: (typeof all)[number]) =>
    record.isCancelled && failure.path.length === 0;
  const unfinished = new Set(
    records.filter((record) => record.kind === "unfinished").map(({ file }) => relative(ROOT, file)),
  );
  // With a global teardown node's runner goes on after the interrupt, and says of each file that it was cancelled.
  for (const each of all) if (isCutOff && isWholeFile(each)) unfinished.add(each.failure.file);
  const ended = times.map(({ file, seconds }) => ({ file: relative(ROOT, file), seconds }));
  const through = new Set(ended.filter(({ file }) => !unfinished.has(file)).map(({ file }) => file));
  const leftOut = isCutOff ? asked.files.filter((file) => !through.has(file)) : [];
  const isOurs = ({ record, failure }: (typeof all)[number]) =>
    record.isCancelled && leftOut.includes(failure.file);
  const counts = ends.at(-1) ?? NOTHING;
  const cancelledByUs = Math.min(counts.cancelled, all.filter(isOurs).length);
  return {
    leftOut,
    counts: {
      ...counts,
      tests: counts.tests - cancelledByUs,
      cancelled: counts.cancelled - cancelledByUs,
    },
    times: ended,
    failures: all.filter((one) => !isOurs(one)).map(({ failure }) => failure),
  };
}

/** A file that failed as a whole is a test that has the file's name. */
function failureOf({ file, path, message }: FailureRecord, { group, runs }: Asked): Failure {
  const [first = ""] = path;
  const isFile = path.length === 1 && (file === undefined || join(ROOT, first) === file || first === file);
  const name = relative(ROOT, file ?? join(ROOT, first));
  return {
    file: name,
    path: isFile ? [] : path,
    message,
    again: again({ group, runs, file: name, path: isFile ? [] : path }),
  };
}

interface Alone {
  readonly group: Group;
  readonly runs: number;
  readonly file: string;
  readonly path: readonly string[];
}

function again({ group, runs, file, path }: Alone): string {
  const name = path.length === 0 ? "" : ` --name ${quoted(`^${escaped(path.join(" "))}$`)}`;
  const share = runs === 1 ? "" : ` --runs ${runs}`;
  return `${NODE} test/runner/main.ts ${group.name} ${file}${name}${share}`;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
