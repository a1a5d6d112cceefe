// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Started, start } from "../support/process.ts";
import type { StackSetup } from "./stack-setup.ts";

const BERTHCTL = fileURLToPath(new URL("../../cli/berthctl.sh", import.meta.url));

/** Where a webhook is, the PEM that its certificate is checked against, and what it asks its clients for. */
export interface Endpoint {
  readonly port: number;
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

/** A process that serves. */
export class Server {
  readonly #started: Started;
  readonly pid: number;
  /** Of performance.now(), before it was started and when it said that it serves. */
  readonly startedAt: number;
  readonly readyAt: number;

  private constructor(started: Started, times: Pick<Server, "startedAt" | "readyAt">) {
    this.#started = started;
    this.pid = started.child.pid ?? 0;
    this.startedAt = times.startedAt;
    this.readyAt = times.readyAt;
  }

  /** Starts a program and waits for its first line. Throws what it printed when it ends before. */
  static async start(
    command: string,
    args: readonly string[],
  ): Promise<{ readonly server: Server; readonly line: string }> {
    const startedAt = performance.now();
    const started = start(command, args, { env: { PATH: "/usr/bin:/bin" } });
    started.child.stderr?.pipe(process.stderr); // errors alone; there are none as a rule
    const early = started.ended.then(({ rc, stderr }) => {
      throw new Error(`${command} ended with ${rc} before it served:\n${stderr}`);
    });
    early.catch(() => {}); // it ends some time
    const line = await Promise.race([firstLine(started), early]);
    return { server: new Server(started, { startedAt, readyAt: performance.now() }), line };
  }

  memory(): Resident {
    return residentOf(this.pid);
  }

  /** SIGTERM lets it end well, SIGKILL is a crash. Resolves when it is gone. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    this.#started.child.kill(signal);
    await this.#started.ended;
  }
}

/** Resident bytes, of which `anonymous` are its own and not those of files. */
export interface Resident {
  readonly resident: number;
  readonly anonymous: number;
}

export function residentOf(pid: number): Resident {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
  return { resident: bytes("VmRSS"), anonymous: bytes("RssAnon") };
}

function firstLine({ child }: Started): Promise<string> {
  return new Promise((resolve) => {
    let printed = "";
    child.stdout?.on("data", (text: string) => {
      printed += text;
      const end = printed.indexOf("\n");
      if (end >= 0) resolve(printed.slice(0, end));
    });
  });
}

export interface RunningStack {
  readonly server: Server;
  readonly socket: string;
  readonly webhook: Endpoint;
}

/** `berthctl up` on a data folder, as a process of its own; ended with the figure. */
export async function startStack(setup: StackSetup, dataDir: string): Promise<RunningStack> {
  const socket = socketOf(dataDir);
  const { server } = await spawnStack(dataDir);
  setup.defer(() => server.end("SIGKILL"));
  const file: { webhook: string; ca: string; cert: string; key: string } = JSON.parse(
    await readFile(join(dataDir, "stack.json"), "utf8"),
  );
  const port = Number(new URL(file.webhook).port);
  const read = (path: string) => readFile(path, "utf8");
  const tls = { ca: await read(file.ca), cert: await read(file.cert), key: await read(file.key) };
  return { server, socket, webhook: { port, ...tls } };
}

/** Resolves when the stack serves everything. */
export async function spawnStack(dataDir: string): Promise<{ readonly server: Server }> {
  const flags = ["--data", dataDir, "--socket", socketOf(dataDir), "--node", "bench", "--log-level", "error"];
  return await Server.start(BERTHCTL, ["up", ...flags]);
}

/** Where a stack of this folder listens for CNI calls. */
export function socketOf(dataDir: string): string {
  return join(dataDir, "agent.sock");
}
