// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** How long a daemon that was asked to end may take. */
const ENDING_MS = 10_000;
/** util-linux: the kernel ends the daemon with its test, even when the test is killed. */
const SETPRIV = "/usr/bin/setpriv";

/** One process of the control plane, which can be killed and started again with the same arguments. */
export class Daemon {
  readonly name: string;
  #command: readonly string[];
  readonly #log: string;
  readonly #endingMs: number;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();

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
    const kill = () => child.kill("SIGKILL");
    process.once("exit", kill);
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      const end = () => {
        process.removeListener("exit", kill);
        if (this.#child === child) this.#child = undefined;
        resolve();
      };
      child.once("error", end);
      child.once("exit", end);
    });
  }

  /** Ends it and waits for that; whatever does not end in time is killed. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    child.kill(signal);
    const timer = new AbortController();
    const late = pause(this.#endingMs, "late", { signal: timer.signal }).catch(() => "ended");
    if ((await Promise.race([this.#ended, late])) === "late") child.kill("SIGKILL");
    timer.abort();
    await this.#ended;
  }

  /** The process stands still, as a host that hangs. */
  pause(): void {
    this.#child?.kill("SIGSTOP");
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
