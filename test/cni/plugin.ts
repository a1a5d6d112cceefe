// SPDX-License-Identifier: Apache-2.0
import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BINARY = `${ROOT}build/berth`;

/** What a run of the plugin gave. */
export interface Run {
  readonly rc: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Brings build/berth up to date with its sources. */
export async function buildPlugin(): Promise<void> {
  await promisify(execFile)("make", ["-s", "-C", `${ROOT}ipam-plugin/client`]);
}

/** A plugin that runs and waits for its configuration. */
export interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  /** Gives it the configuration and waits for its end. */
  finish(stdin: string): Promise<Run>;
}

/** Starts the CNI binary as a runtime does: with this environment and nothing of ours. */
export function startPlugin(socket: string, env: Readonly<Record<string, string>>): Started {
  const child = spawn(BINARY, [], { env: { ...env, BERTH_SOCKET: socket } });
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
  child.stdin.on("error", () => {}); // VERSION does not read it
  const ended = new Promise<Run>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      const [out, err] = [stdout, stderr].map((chunks) => Buffer.concat(chunks).toString());
      resolve({ rc: code ?? -1, stdout: out ?? "", stderr: err ?? "" });
    });
  });
  return {
    child,
    finish(stdin) {
      child.stdin.end(stdin);
      return ended;
    },
  };
}

export function runPlugin(
  socket: string,
  env: Readonly<Record<string, string>>,
  stdin: string,
): Promise<Run> {
  return startPlugin(socket, env).finish(stdin);
}
