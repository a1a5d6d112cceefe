// SPDX-License-Identifier: Apache-2.0
// A run of a suite: a temporary directory and a mark of its own, the groups one after another, and the account at the end.
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Writable } from "node:stream";
import { ROOT } from "./files.ts";
import { filesLeft, killAll, leftAfterGrace, mountsLeft, namespacesLeft, processesOf } from "./leftovers.ts";
import { handOut, type Namespaces, openNamespaces, pathsToKeep } from "./namespaces.ts";
import { type Asked, sharesOf, type UnderWay } from "./outcome.ts";
import { OutputInTurn } from "./output-in-turn.ts";
import { processorSeconds } from "./processor-time.ts";
import {
  add,
  type Counts,
  ending,
  type Failure,
  type FileTime,
  NOTHING,
  type SkipReason,
  type Summary,
  skipReasons,
  slowest,
  verdictOf,
  wordsOf,
} from "./results.ts";
import { type Given, runTests } from "./tests.ts";
import { wordsOfUnwritable } from "./unwritable.ts";

/** Said to the guard when the run ends by itself. */
const OVER = "over";
const SUITES_FILE = "suites.jsonl";
const FAILURES_FILE = "failures.txt";
const LEFT_OUT_FILE = "left-out.txt";

/** Where summaries and failures are written: $BERTH_REPORT, which keeps what other suites wrote, or build/report/SUITE. */
export function reportFolder(suite: string, env: NodeJS.ProcessEnv): string {
  const named = env["BERTH_REPORT"];
  const folder = named === undefined || named === "" ? join(ROOT, "build/report", suite) : named;
  mkdirSync(folder, { recursive: true });
  // not all of it: another run of the suite may be under way
  if (folder !== named)
    for (const file of [SUITES_FILE, FAILURES_FILE, LEFT_OUT_FILE])
      rmSync(join(folder, file), { force: true });
  return folder;
}

interface Options {
  /** Whether what the tests print is shown: absent, it is. */
  readonly output?: "inherit" | "ignore";
  /** False: what these tests start may outlive them, and somebody else looks for it. */
  readonly isMarked?: boolean;
  /** False: it has no namespaces of its own, even where it could. */
  readonly isApart?: boolean;
  /** For so long nothing may be heard of any test; absent: as long as one may take, and a minute. */
  readonly silenceMs?: number;
}

export class SuiteRun {
  readonly #suite: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #report: string;
  readonly #options: Options;
  /** Short too: it is part of the names of interfaces. */
  readonly #id = Math.random().toString(36).slice(2, 7).padEnd(5, "0");
  /** Short: the path of a unix socket in it has at most 107 characters. Empty: nobody looks for what is left. */
  readonly #folder: string;
  /** Not in the folder: that is the tests'. */
  readonly #records: string;
  readonly #sessions = new Set<number>();
  readonly #started = performance.now();
  readonly #cpuBefore = processorSeconds().children;
  readonly #times: FileTime[] = [];
  readonly #failures: Failure[] = [];
  readonly #complaints: string[] = [];
  readonly #leftOut: string[] = [];
  /** Files that had not begun when it was interrupted. */
  #notBegun = 0;
  readonly #skippedFor: SkipReason[] = [];
  #counts: Counts = NOTHING;
  /** Each ends the tests of a process, if they are under way. */
  readonly #ends = new Set<(signal: NodeJS.Signals) => void>();
  #namespaces: Namespaces | undefined;
  /** Paths of variables that were not there at the start. */
  #absent: readonly string[] = [];
  #isOpen = false;
  /** Of the tests that were asked for. */
  #name: string | undefined;
  /** Ends what the tests started if this process is killed. */
  readonly #guard: Writable | undefined;
  #isInterrupted = false;

  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  get #isMarked(): boolean {
    return this.#options.isMarked ?? true;
  }

  constructor(suite: string, env: NodeJS.ProcessEnv, options: Options = {}) {
    this.#options = options;
    this.#suite = suite;
    this.#report = reportFolder(suite, env);
    this.#records = join(this.#report, `records-${this.#id}`);
    this.#folder = this.#isMarked ? mkdtempSync(join(tmpdir(), "b-")) : "";
    this.#guard = this.#isMarked ? startGuard(this.#id, this.#folder, this.#records) : undefined;
    this.#env = {
      ...env,
      ...(this.#isMarked && { TMPDIR: this.#folder, BERTH_RUN: this.#id }),
      NODE_COMPILE_CACHE: env["NODE_COMPILE_CACHE"] ?? join(ROOT, "build/compile-cache"),
    };
  }

  /** Ends the tests that are under way, and starts no more. */
  interrupt(signal: NodeJS.Signals): void {
    this.#isInterrupted = true;
    for (const end of this.#ends) end(signal);
  }

  /** Makes the run fail, with this reason at its end. */
  complain(reason: string): void {
    this.#complaints.push(reason);
  }

  /** Runs files of a group, or of several groups at a time, and remembers what they gave; false when one failed. */
  async pass(...all: readonly Asked[]): Promise<boolean> {
    if (this.#isInterrupted || all.every(({ files }) => files.length === 0)) return !this.#isInterrupted;
    const deadline = deadlineOf(this.#env);
    if (deadline !== undefined && Date.now() >= deadline) {
      this.#leftOut.push(...all.flatMap(({ files }) => files));
      return true;
    }
    if (!this.#isOpen) await this.#open();
    // until then there was nothing to end
    if (this.#isInterrupted) return false;
    this.#name = all.find(({ name }) => name !== undefined)?.name ?? this.#name;
    const shares = all.flatMap((asked) => sharesOf(asked));
    const given = await Promise.all(shares.map((share, n) => this.#run(share, n, deadline)));
    for (const one of given) this.#remember(one);
    return given.every(({ complaint, failures }) => complaint === undefined && failures.length === 0);
  }

  async #run(share: Asked, n: number, deadline: number | undefined): Promise<Given> {
    const records = `${this.#records}-${n}`;
    const { output = "inherit", silenceMs } = this.#options;
    const shown = new OutputInTurn(output, `${records}-output`, n);
    const given = await runTests(
      { ...share, seed: this.#env["BERTH_SEED"] },
      {
        env: { ...this.#env, ...(this.#namespaces && { TMPDIR: "/tmp" }) },
        namespaces: this.#namespaces,
        isInterrupted: () => this.#isInterrupted,
        ...{ deadline, silenceMs, records },
        output: shown.to,
        started: (session, end) => {
          this.#ends.add(end);
          if (session === undefined) return;
          this.#sessions.add(session);
          this.#guard?.write(`${session}\n`);
        },
      },
    );
    shown.close();
    return given;
  }

  #remember({ counts, times, failures, complaint, leftOut, notBegun, skippedFor, underWay }: Given): void {
    this.#counts = add(this.#counts, counts);
    this.#times.push(...times);
    this.#notBegun += notBegun;
    this.#failures.push(...failures);
    this.#leftOut.push(...leftOut);
    this.#skippedFor.push(...skippedFor);
    if (complaint !== undefined) this.#complaints.push(complaint);
    if (this.#isInterrupted && complaint === undefined)
      this.#complaints.push(...underWay.flatMap(interruptedWords));
  }

  async #open(): Promise<void> {
    this.#isOpen = true;
    if (!this.#isMarked || this.#options.isApart === false) return;
    const paths = pathsToKeep(this.#env, [ROOT, this.#report, dirname(process.execPath)]);
    this.#namespaces = await openNamespaces(this.#folder, paths, this.#env);
    if (this.#namespaces !== undefined) this.#absent = paths.absent;
  }

  /** Looks for what was left behind, writes the report, and gives what there is to say. */
  async finish(): Promise<{ readonly summary: Summary; readonly text: string }> {
    const rest = this.#notBegun === 0 ? "" : ` before ${this.#notBegun} of its files had begun`;
    if (this.#isInterrupted) this.#complaints.push(`it was interrupted${rest}`);
    if (this.#isMarked) await this.#lookAround();
    this.#guard?.end(`${OVER}\n`);
    let summary = this.#summary();
    const unwritten = this.#writeReport(summary);
    if (unwritten !== undefined) {
      this.#complaints.push(unwritten);
      summary = this.#summary();
    }
    return { summary, text: ending(summary, join(this.#report, FAILURES_FILE)) };
  }

  /** Why it cannot be written. */
  #writeReport(summary: Summary): string | undefined {
    const leftOut = this.#leftOut.map((file) => `${this.#suite}: ${file}\n`);
    const lines = [...this.#failures.flatMap(wordsOf), ...this.#complaints];
    const failures = lines.length === 0 ? "" : `${[`${this.#suite}:`, ...lines].join("\n")}\n`;
    try {
      appendFileSync(join(this.#report, SUITES_FILE), `${JSON.stringify(summary)}\n`);
      appendFileSync(join(this.#report, LEFT_OUT_FILE), leftOut.join(""));
      if (failures !== "") appendFileSync(join(this.#report, FAILURES_FILE), failures);
      return undefined;
    } catch (error) {
      const words = wordsOfUnwritable(error);
      if (words === undefined) throw error;
      return words;
    }
  }

  #nothingPassed({ tests }: Counts): string {
    if (tests > 0) return `nothing passed: ${tests === 1 ? "the one test" : `all ${tests} tests`} skipped`;
    if (this.#skippedFor.length > 0) return "nothing passed: all of it was skipped";
    return this.#name === undefined ? "no test was run" : `no test is called ${this.#name}`;
  }

  #summary(): Summary {
    const [failures, leftOut, complaints] = [this.#failures, this.#leftOut, this.#complaints];
    const given = { ...this.#counts, failures, leftOut, complaints };
    const isUnexplained =
      verdictOf(given) === "failed" && given.failed + given.cancelled + failures.length === 0;
    if (isUnexplained && complaints.length === 0) complaints.push(this.#nothingPassed(given));
    return {
      suite: this.#suite,
      verdict: verdictOf(given),
      ...given,
      seconds: (performance.now() - this.#started) / 1000,
      cpuSeconds: processorSeconds().children - this.#cpuBefore,
      slowest: slowest(this.#times),
      skippedFor: skipReasons(this.#skippedFor),
    };
  }

  async #lookAround(): Promise<void> {
    const mark = { id: this.#id, folder: this.#folder, sessions: this.#sessions };
    const apart = this.#namespaces;
    const running = () => (apart === undefined ? processesOf(mark) : apart.processes());
    const processes = await leftAfterGrace(running);
    const mounts = apart?.mounts() ?? mountsLeft(mark);
    handOut(this.#folder, this.#absent);
    const left = [
      ...processes.map(({ pid, command }) => `left running, and killed: ${pid} ${command}`),
      ...mounts.map((point) => `left mounted: ${point}`),
      ...(apart?.networkNamespaces() ?? namespacesLeft(mark)).map(
        (name) => `left behind: the network namespace ${name}`,
      ),
      ...filesLeft(this.#folder, apart?.furnished ?? { made: new Set(), kept: new Set() }).map(
        (what) => `left in the temporary directory: ${what}`,
      ),
    ];
    // what was ended at the deadline could not clean up behind itself: we do, and do not complain
    if (this.#leftOut.length === 0) this.#complaints.push(...left);
    if (apart === undefined) killAll(processes);
    await apart?.close();
    // what is mounted among all others is not ours to remove
    if (apart !== undefined || mounts.length === 0) rmSync(this.#folder, { recursive: true, force: true });
  }
}

function interruptedWords({ file, path, again }: UnderWay): readonly string[] {
  return [`${file}: ${path.join(" › ")} was under way`, `  again: ${again}`];
}

function startGuard(...said: readonly [id: string, folder: string, records: string]): Writable {
  const guard = spawn(process.execPath, [join(import.meta.dirname, "guard.ts"), ...said], {
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
