// SPDX-License-Identifier: Apache-2.0
// One run of node's test runner over some files: what it is started with, and how it is ended.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join, matchesGlob, relative } from "node:path";
import { ROOT } from "./files.ts";
import type { Namespaces } from "./namespaces.ts";
import {
  type Asked,
  brokenOff,
  type CutOff,
  type Outcome,
  outcomeOf,
  type UnderWay,
  underWay,
  wholeFile,
} from "./outcome.ts";
import type { RunRecord } from "./record.ts";
import type { Group } from "./suites.ts";

export interface Surroundings {
  /** The environment of every process. */
  readonly env: NodeJS.ProcessEnv;
  /** Where the reporter writes. */
  readonly records: string;
  /** Where what it prints goes: a number is that of an open file. */
  readonly output: "inherit" | "ignore" | number;
  /** Where its processes are; absent: among all others. */
  readonly namespaces?: Namespaces | undefined;
  /** Called with the session that it leads, and what ends it. */
  readonly started: (session: number | undefined, end: (signal: NodeJS.Signals) => void) => void;
  /** Whether the run has been. */
  readonly isInterrupted: () => boolean;
  /** Milliseconds since 1970: what is under way then is ended, and left out. Absent: there is time. */
  readonly deadline?: number | undefined;
  /** For so long nothing may be heard of any test. Absent: the time of one test, and a minute. */
  readonly silenceMs?: number | undefined;
}

export interface Given extends Outcome {
  /** Why the runner itself failed although no test did. */
  readonly complaint?: string;
  /** What had begun and not ended. */
  readonly underWay: readonly UnderWay[];
}

export async function runTests(whole: Asked, surroundings: Surroundings): Promise<Given> {
  const refused = whole.group.isolation === "none" ? hooksIn(whole.files) : [];
  const isRefused = (file: string) => refused.some((one) => one.file === join(ROOT, file));
  const asked = { ...whole, files: whole.files.filter((file) => !isRefused(file)) };
  // without a file node's runner would look for some
  if (asked.files.length === 0) return { ...outcomeOf(refused, whole, undefined), underWay: [] };
  const { status, cutOff, silence } = await ended(asked, surroundings);
  const { records } = surroundings;
  const all = [...readRecords(records), ...readRecords(toldBeside(records))];
  for (const file of [records, toldBeside(records)]) rmSync(file, { force: true });
  const outcome = outcomeOf([...refused, ...onlyIn(asked.files), ...all], whole, cutOff);
  const open = underWay(all, asked);
  const isThrough = status === "0" && all.some(({ kind }) => kind === "end");
  const toldOf = outcome.failures.length + outcome.notBegun;
  const isExplained = isThrough || cutOff === "at the deadline" || toldOf > refused.length;
  if (silence === undefined && isExplained) return { ...outcome, underWay: open };
  const which = asked.files.length === 1 ? asked.files[0] : `${asked.files.length} files`;
  const why = silence ?? `the process of ${which} ended with ${status} before it had told of all tests`;
  const reason = silence === undefined || !all.some(({ kind }) => kind === "begun") ? "" : `${ENDED}, `;
  const held = silence === undefined || open.length > 0 ? [] : heldFiles(all, asked);
  if (held.length > 0) {
    const failures = held.map((file) => wholeFile(file, `${why}: ${HELD}`, asked));
    return { ...outcome, underWay: open, failures: [...outcome.failures, ...failures] };
  }
  if (open.length === 0)
    return { ...outcome, underWay: open, complaint: `${why}, ${reason}${lastBegun(all)}` };
  const broken = open.map((one) => brokenOff(one, `${why}, and this test was under way`));
  return { ...outcome, underWay: open, failures: [...outcome.failures, ...broken] };
}

/** Runs them, and gives how their process ended. */
async function ended(asked: Asked, surroundings: Surroundings) {
  const child = start(asked, surroundings);
  const end = ending(child, surroundings.namespaces);
  surroundings.started(child.pid, end);
  const isOver = endAt(surroundings.deadline, end);
  const silenced = endInSilence(asked, surroundings, end);
  const status = await new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(signal ?? String(code)));
  });
  return { status, cutOff: cutOffBy(isOver(), surroundings.isInterrupted()), silence: silenced() };
}

function cutOffBy(isOver: boolean, isInterrupted: boolean): CutOff {
  if (isOver) return "at the deadline";
  return isInterrupted ? "by an interrupt" : undefined;
}

const HOOK = /^(before|after)(Each)?\(/m;

/** Where files share a process, a hook outside of a describe is one of the tests of all of them. */
function hooksIn(files: readonly string[]): readonly Extract<RunRecord, { kind: "exit" }>[] {
  return files.flatMap((name) => {
    const file = join(ROOT, name);
    const hook = existsSync(file) ? HOOK.exec(readFileSync(file, "utf8"))?.[0] : undefined;
    if (hook === undefined) return [];
    const message = `not run: its hook ${hook.slice(0, -1)} outside of a describe would be one of all files that share its process`;
    return [{ kind: "exit", file, message }];
  });
}

/** The option `only` cannot be seen from inside the process (only.ts): its source is looked at. */
function onlyIn(files: readonly string[]): readonly RunRecord[] {
  return files
    .map((file) => join(ROOT, file))
    .filter((file) => existsSync(file) && /\bonly: ?true\b/.test(readFileSync(file, "utf8")))
    .map((file) => ({
      kind: "exit",
      file,
      message: "the option only would leave out other tests: all of them are to be run",
    }));
}

function start(asked: Asked, { env, records, output, namespaces }: Surroundings): ChildProcess {
  const { group, files, runs } = asked;
  const argv = [process.execPath, ...argumentsFor(asked, records)];
  const [command = "", ...rest] = namespaces?.commandFor(argv, ROOT) ?? argv;
  const shared = group.isolation === "none" ? JSON.stringify(files.map((file) => join(ROOT, file))) : "[]";
  return spawn(command, rest, {
    cwd: ROOT,
    env: {
      ...env,
      ...group.env,
      BERTH_RUNS: String(runs),
      BERTH_EXITS: toldBeside(records),
      BERTH_SHARED: shared,
    },
    stdio: ["ignore", output, output],
    // a session of its own, by which its processes are known when they have no environment
    detached: true,
  });
}

/** Node's runner ends the tests of its files by itself when it is interrupted; what does not heed it is killed. */
const HEED_MS = 10_000;
/** The longest that a timer of Node.js takes. */
const LONGEST_MS = 2 ** 31 - 1;
const MINUTE_MS = 60_000;
const LOOK_MS = 250;

/** What ends the tests. */
function ending(child: ChildProcess, namespaces: Namespaces | undefined): (signal: NodeJS.Signals) => void {
  const send = (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    if (namespaces === undefined) child.kill(signal);
    else namespaces.kill(child, signal);
  };
  return (signal) => {
    send(signal);
    if (signal !== "SIGKILL") setTimeout(() => send("SIGKILL"), HEED_MS).unref();
  };
}

/** Ends the run at the deadline; what it gives says, once the run is over, whether that happened. */
function endAt(deadline: number | undefined, end: (signal: NodeJS.Signals) => void): () => boolean {
  if (deadline === undefined) return () => false;
  let isCutOff = false;
  const interrupt = setTimeout(
    () => {
      isCutOff = true;
      end("SIGINT");
    },
    Math.min(Math.max(deadline - Date.now(), 0), LONGEST_MS),
  );
  return () => {
    clearTimeout(interrupt);
    return isCutOff;
  };
}

/** A test that blocks its process, or a process that does not end with its tests, would hold the run for ever. */
function endInSilence(
  { group }: Asked,
  { records, silenceMs }: Surroundings,
  end: (signal: NodeJS.Signals) => void,
): () => string | undefined {
  const longest = silenceMs ?? (group.timeoutMs === undefined ? undefined : group.timeoutMs + MINUTE_MS);
  if (longest === undefined) return () => undefined;
  let [size, heard, isSilent] = [0, performance.now(), false];
  const looking = setInterval(() => {
    const now = sizeOf(records) + sizeOf(toldBeside(records));
    if (now !== size) [size, heard] = [now, performance.now()];
    if (isSilent || performance.now() - heard < longest) return;
    isSilent = true;
    end("SIGKILL");
  }, LOOK_MS);
  return () => {
    clearInterval(looking);
    return isSilent ? `nothing was heard of any test for ${Math.round(longest / 1000)} s` : undefined;
  };
}

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

const HELD =
  "its tests had ended and its process had not: a hook hangs, or a timer, a server or a process that they left open";
const ENDED =
  "though all tests that had begun had ended: a hook hangs, or one of them left a timer, a server or a process open";

/** Files in processes of their own that began, and did not end (cost.ts). */
function heldFiles(records: readonly RunRecord[], { group }: Asked): readonly string[] {
  const of = (kind: "begun" | "cpu") =>
    new Set(records.flatMap((one) => (one.kind === kind ? [relative(ROOT, one.file)] : [])));
  const ended = of("cpu");
  return group.isolation === "process" ? [...of("begun")].filter((file) => !ended.has(file)) : [];
}

function lastBegun(records: readonly RunRecord[]): string {
  const last = records.findLast((record) => record.kind === "begun");
  return last === undefined
    ? "and none had begun"
    : `and the last that had begun was ${relative(ROOT, last.file)}: ${last.path.join(" › ")}`;
}

function argumentsFor({ group, files, name }: Asked, records: string): readonly string[] {
  const reporter = (file: string, to: string) => [
    `--test-reporter=${join(import.meta.dirname, file)}`,
    `--test-reporter-destination=${to}`,
  ];
  return [
    ...(group.nodeArgs ?? []),
    `--import=${join(import.meta.dirname, "preload.ts")}`,
    "--test",
    `--test-isolation=${group.isolation}`,
    `--test-concurrency=${group.concurrency ?? 1}`,
    ...(group.timeoutMs === undefined ? [] : [`--test-timeout=${group.timeoutMs}`]),
    ...(group.globalSetup === undefined ? [] : [`--test-global-setup=${join(ROOT, group.globalSetup)}`]),
    ...(name === undefined ? [] : [`--test-name-pattern=${name}`]),
    ...reporter("progress.ts", "stdout"),
    ...reporter("record.ts", records),
    ...files.map((file) => namedFor(group, file)),
  ];
}

/** Node's runner begins them in the order of their names: one that has its whole path comes before those that do not. */
function namedFor({ first = [] }: Group, file: string): string {
  return first.some((glob) => matchesGlob(file, glob)) ? join(ROOT, file) : file;
}

/** The reporter's own file is written over from where it is. */
const toldBeside = (records: string) => `${records}-exits`;

/** None: the runner did not come as far as that. */
function readRecords(file: string): readonly RunRecord[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8").split("\n").flatMap(recordIn);
}

/** None: it was cut off, as the last one where a process was killed, or where no space was left. */
function recordIn(line: string): readonly RunRecord[] {
  try {
    const record: RunRecord = JSON.parse(line);
    return [record];
  } catch {
    return [];
  }
}
