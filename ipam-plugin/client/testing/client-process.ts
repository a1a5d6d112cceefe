// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const SOURCES = join(import.meta.dirname, "..");
export const BINARY = join(SOURCES, "..", "..", "build", "berth");

/** Makes build/berth if it is older than its sources. Several tests may do so at once. */
export async function buildClient(): Promise<void> {
  await promisify(execFile)("make", ["-s", "-C", SOURCES, "OUT=../../build/berth"]);
}

export interface Finished {
  /** The exit status, or the name of the signal that ended it. */
  readonly exit: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly process: ChildProcess;
  readonly finished: Promise<Finished>;
}

/** The CNI binary as a runtime starts it: this environment and nothing else. */
export function startClient(env: Readonly<Record<string, string>>, stdin: string | Buffer = "{}"): Started {
  return follow(spawn(BINARY, { env }), stdin);
}

export async function runClient(
  env: Readonly<Record<string, string>>,
  stdin?: string | Buffer,
): Promise<Finished> {
  return await startClient(env, stdin).finished;
}

/** Feeds a process and collects what it prints. */
export function follow(child: ChildProcess, stdin: string | Buffer = ""): Started {
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      printed[name] += text;
    });
  }
  // A process that ends before it has read everything breaks the pipe: its exit tells more.
  child.stdin?.on("error", () => {});
  child.stdin?.end(stdin);
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status, signal) => resolve({ exit: status ?? signal, ...printed }));
  });
  return { process: child, finished };
}
