// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** How long a daemon that was asked to end may take. */
const ENDING_MS = 10_000;
const RESTART_MS = 1_000;
/** util-linux: the kernel ends the daemon with its test, even when the test is killed. */
const SETPRIV = "/usr/bin/setpriv";

/** Of this process, which kills them if it ends before them. */
const running = new Set<ChildProcess>();

process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** One process of the control plane, which can be killed and started again with the same arguments. */
export class Daemon {
  readonly name: string;
  #command: readonly string[];
  readonly #log: string;
  readonly #endingMs: number;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isKept = false;

  /** `log` is the file that its output is added to; what was asked to end is killed after `endingMs`. */
  constructor(name: string, command: readonly string[], log: string, endingMs: number = ENDING_MS) {
    this.name = name;
    this.#command = endingWithTest(command);
    this.#log = log;
    this.#endingMs = endingMs;
  }

  /** What the next start runs. */
  become(command: readonly string[]): void {
    this.#command = endingWithTest(command);
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  /** Starts it, unless it runs. */
  start(): void {
    if (this.#child !== undefined) return;
    const [command = "", ...args] = this.#command;
    const log = openSync(this.#log, "a");
    const child = spawn(command, args, { stdio: ["ignore", log, log] });
    closeSync(log);
    running.add(child);
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      const end = () => {
        running.delete(child);
        if (this.#child === child) this.#child = undefined;
        if (this.#isKept) void this.#startSoon();
        resolve();
      };
      child.once("error", end);
      child.once("exit", end);
    });
  }

  /** Starts it, and again whenever it ends by itself, as a kubelet does with a static pod, until it is stopped. */
  keepRunning(): void {
    this.#isKept = true;
    this.start();
  }

  async #startSoon(): Promise<void> {
    await pause(RESTART_MS, undefined, { ref: false });
    if (this.#isKept) this.start();
  }

  /** Ends it and waits for that; whatever does not end in time is killed. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    this.#isKept = false;
    const child = this.#child;
    if (child === undefined) return;
    child.kill(signal);
    const timer = new AbortController();
    const late = pause(this.#endingMs, "late", { signal: timer.signal }).catch(() => "ended");
    if ((await Promise.race([this.#ended, late])) === "late") child.kill("SIGKILL");
    timer.abort();
    await this.#ended;
  }

  /** The process stands still, as a host that hangs, with all of its threads: on a busy machine they go on for a moment after the signal. */
  pause(): void {
    const child = this.#child;
    if (child?.pid === undefined) return;
    child.kill("SIGSTOP");
    for (let n = 0; n < STOPPING_LOOKS && !standsStill(child.pid); n++) Atomics.wait(NOTHING, 0, 0, 1);
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  /** The end of its output, for the message when something failed. */
  tail(lines = 20): string {
    if (!existsSync(this.#log)) return `${this.name} wrote nothing`;
    return readFileSync(this.#log, "utf8").split("\n").slice(-lines).join("\n");
  }
}

function endingWithTest(command: readonly string[]): readonly string[] {
  return existsSync(SETPRIV) ? [SETPRIV, "--pdeathsig=KILL", "--", ...command] : command;
}

/** 10 s, a look each ms. */
const STOPPING_LOOKS = 10_000;
const NOTHING = new Int32Array(new SharedArrayBuffer(4));

/** Whether all threads of the process are stopped, by proc_pid_stat(5): the state stands behind the name in parentheses. */
function standsStill(pid: number): boolean {
  const folder = `/proc/${pid}/task`;
  try {
    return readdirSync(folder).every((thread) => {
      const stat = readFileSync(`${folder}/${thread}/stat`, "utf8");
      return stat.slice(stat.lastIndexOf(")") + 2).search(/[TZX]/) === 0;
    });
  } catch {
    return !existsSync(folder); // a thread has ended meanwhile, or all of them
  }
}
