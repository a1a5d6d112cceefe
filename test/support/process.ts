// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";

export type Env = Readonly<Record<string, string>>;

/** All that this process has, for tools that need it. */
export function inheritedEnv(): Env {
  return Object.fromEntries(Object.entries(process.env).map(([key, value = ""]) => [key, value]));
}

/** Where node keeps what it compiled, if it is told to: for processes of Berth that have an environment of their own. */
export function compileCache(): Env {
  const folder = process.env["NODE_COMPILE_CACHE"];
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}

/** How a process ended: `rc` is its exit status, or -1 when a signal ended it. */
export interface Ended {
  readonly rc: number;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

export interface StartOptions {
  /** Absent: nothing at all, as a container runtime starts plugins. */
  readonly env?: Env;
  /** What it reads, or `later`: the caller writes it. */
  readonly stdin?: { readonly text: string } | "later";
  /** Absent: three pipes. */
  readonly stdio?: StdioOptions;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a process and collects what it prints. It is killed when this process exits before it. */
export function start(command: string, args: readonly string[], options: StartOptions = {}): Started {
  const child = spawn(command, args, { env: options.env ?? {}, stdio: options.stdio ?? "pipe" });
  running.add(child);
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      printed[name] += text;
    });
  }
  child.stdin?.on("error", () => {}); // it may end before it has read everything
  if (options.stdin !== "later") child.stdin?.end(options.stdin?.text ?? "");
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status, signal) => {
      running.delete(child);
      resolve({ rc: status ?? -1, signal, ...printed });
    });
  });
  return { child, ended };
}

/** Runs a process to its end, whatever that is. */
export async function run(
  command: string,
  args: readonly string[],
  options: StartOptions = {},
): Promise<Ended> {
  return await start(command, args, options).ended;
}
