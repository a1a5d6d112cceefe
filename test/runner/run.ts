// SPDX-License-Identifier: Apache-2.0
// A run of a suite: a temporary directory and a mark of its own, the groups one after another, and the account at the end.
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { ROOT } from "./files.ts";
import { filesLeft, killAll, mountsLeft, namespacesLeft, processesLeft } from "./leftovers.ts";
import {
  add,
  type Counts,
  ending,
  type Failure,
  type FileTime,
  NOTHING,
  type Summary,
  slowest,
  wordsOf,
} from "./results.ts";
import { type Asked, runTests } from "./tests.ts";

/** Said to the guard when the run ends by itself. */
const OVER = "over";
const SUITES_FILE = "suites.jsonl";
const FAILURES_FILE = "failures.txt";

/** Where summaries and failures are written: $BERTH_REPORT, which keeps what other suites wrote, or build/report/SUITE. */
export function reportFolder(suite: string, env: NodeJS.ProcessEnv): string {
  const named = env["BERTH_REPORT"];
  const folder = named === undefined || named === "" ? join(ROOT, "build/report", suite) : named;
  mkdirSync(folder, { recursive: true });
  // not all of it: another run of the suite may be under way
  if (folder !== named)
    for (const file of [SUITES_FILE, FAILURES_FILE]) rmSync(join(folder, file), { force: true });
  return folder;
}

interface Options {
  /** Whether what the tests print is shown: absent, it is. */
  readonly output?: "inherit" | "ignore";
  /** False: what these tests start may outlive them, and somebody else looks for it. */
  readonly isMarked?: boolean;
}

export class SuiteRun {
  readonly #suite: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #report: string;
  readonly #output: "inherit" | "ignore";
  readonly #isMarked: boolean;
  /** Short too: it is part of the names of interfaces. */
  readonly #id = Math.random().toString(36).slice(2, 7).padEnd(5, "0");
  /** Short: the path of a unix socket in it has at most 107 characters. */
  readonly #folder = mkdtempSync(join(tmpdir(), "b-"));
  /** Not in the folder: that is the tests'. */
  readonly #records: string;
  readonly #sessions = new Set<number>();
  readonly #started = performance.now();
  readonly #cpuBefore = childrenSeconds();
  readonly #times: FileTime[] = [];
  readonly #failures: Failure[] = [];
  readonly #complaints: string[] = [];
  readonly #leftOut: string[] = [];
  #counts: Counts = NOTHING;
  #child: ChildProcess | undefined;
  /** Ends what the tests started if this process is killed. */
  readonly #guard: Writable | undefined;
  #isInterrupted = false;

  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  constructor(suite: string, env: NodeJS.ProcessEnv, options: Options = {}) {
    this.#output = options.output ?? "inherit";
    this.#isMarked = options.isMarked ?? true;
    this.#suite = suite;
    this.#report = reportFolder(suite, env);
    this.#records = join(this.#report, `records-${this.#id}`);
    this.#guard = this.#isMarked ? startGuard(this.#id, this.#folder) : undefined;
    this.#env = {
      ...env,
      ...(this.#isMarked && { TMPDIR: this.#folder, BERTH_RUN: this.#id }),
      NODE_COMPILE_CACHE: env["NODE_COMPILE_CACHE"] ?? join(ROOT, "build/compile-cache"),
    };
  }

  /** Ends the tests that are under way, and starts no more. */
  interrupt(signal: NodeJS.Signals): void {
    this.#isInterrupted = true;
    this.#child?.kill(signal);
  }

  /** Makes the run fail, with this reason at its end. */
  complain(reason: string): void {
    this.#complaints.push(reason);
  }

  /** Runs files of a group, and remembers what they gave; false when one failed. */
  async pass(asked: Asked): Promise<boolean> {
    if (this.#isInterrupted || asked.files.length === 0) return !this.#isInterrupted;
    const deadline = deadlineOf(this.#env);
    if (deadline !== undefined && Date.now() >= deadline) {
      this.#leftOut.push(...asked.files);
      return true;
    }
    const { counts, times, failures, complaint, leftOut } = await runTests(asked, {
      env: this.#env,
      deadline,
      records: this.#records,
      output: this.#output,
      started: (child) => {
        this.#child = child;
        if (child.pid === undefined) return;
        this.#sessions.add(child.pid);
        this.#guard?.write(`${child.pid}\n`);
      },
    });
    rmSync(this.#records, { force: true });
    this.#counts = add(this.#counts, counts);
    this.#times.push(...times);
    this.#failures.push(...failures);
    this.#leftOut.push(...leftOut);
    if (complaint !== undefined) this.#complaints.push(complaint);
    return complaint === undefined && failures.length === 0;
  }

  /** Looks for what was left behind, writes the report, and gives what there is to say. */
  async finish(): Promise<{ readonly summary: Summary; readonly text: string }> {
    if (this.#isInterrupted) this.#complaints.push("it was interrupted");
    if (this.#isMarked) await this.#lookAround();
    else rmSync(this.#folder, { recursive: true });
    this.#guard?.end(`${OVER}\n`);
    const seconds = (performance.now() - this.#started) / 1000;
    const summary: Summary = {
      suite: this.#suite,
      ...this.#counts,
      seconds,
      cpuSeconds: childrenSeconds() - this.#cpuBefore,
      slowest: slowest(this.#times),
      failures: this.#failures,
      complaints: this.#complaints,
      leftOut: this.#leftOut,
    };
    appendFileSync(join(this.#report, SUITES_FILE), `${JSON.stringify(summary)}\n`);
    const leftOut = this.#leftOut.map((file) => `${this.#suite}: ${file}\n`);
    appendFileSync(join(this.#report, "left-out.txt"), leftOut.join(""));
    const failures = join(this.#report, FAILURES_FILE);
    const lines = [...this.#failures.flatMap(wordsOf), ...this.#complaints];
    if (lines.length > 0) appendFileSync(failures, `${[`${this.#suite}:`, ...lines].join("\n")}\n`);
    return { summary, text: ending(summary, failures) };
  }

  async #lookAround(): Promise<void> {
    const mark = { id: this.#id, folder: this.#folder, sessions: this.#sessions };
    // what was ended at the deadline could not clean up behind itself: we do, and do not complain
    const isCutOff = this.#leftOut.length > 0;
    const processes = await processesLeft(mark);
    if (!isCutOff) {
      for (const { pid, command } of processes)
        this.#complaints.push(`left running, and killed: ${pid} ${command}`);
    }
    killAll(processes);
    const mounts = mountsLeft(mark);
    const namespaces = namespacesLeft(mark);
    const files = filesLeft(mark);
    const left = [
      ...mounts.map((point) => `left mounted: ${point}`),
      ...namespaces.map((name) => `left behind: the network namespace ${name}`),
      ...files.map((what) => `left in the temporary directory: ${what}`),
    ];
    if (!isCutOff) this.#complaints.push(...left);
    // what is mounted there is not ours to remove
    if (mounts.length === 0) rmSync(this.#folder, { recursive: true, force: true });
  }
}

function startGuard(id: string, folder: string): Writable {
  const guard = spawn(process.execPath, [join(import.meta.dirname, "guard.ts"), id, folder], {
    cwd: ROOT,
    stdio: ["pipe", "ignore", "inherit"],
    detached: true,
  });
  guard.unref();
  // it may be killed too
  guard.stdin.on("error", () => {});
  return guard.stdin;
}

/** $BERTH_DEADLINE, in seconds since 1970, as a clock of milliseconds. */
function deadlineOf(env: NodeJS.ProcessEnv): number | undefined {
  const seconds = Number(env["BERTH_DEADLINE"]);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined;
}

/** Of all processes that this one started and has seen the end of, and of theirs. */
function childrenSeconds(): number {
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  // cutime and cstime, in ticks of a hundredth
  return (Number(fields[13]) + Number(fields[14])) / 100;
}
