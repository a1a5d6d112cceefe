// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Writable } from "node:stream";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { shortDuration } from "../../allocator/base/go-duration.ts";
import { reportWarning } from "../apply/report.ts";
import { waitForStack } from "../apply/stack-wait.ts";
import { isStack, readStackFile, type StackFile } from "../backend/stack-file.ts";
import type { Arguments } from "../terminal/arguments.ts";
import type { CommandContext, ExitCode } from "../terminal/command.ts";
import { ETCD_FLAGS, waitMsOf } from "../terminal/flags.ts";
import { readPools } from "./pools-file.ts";
import { ensurePrivate } from "./require-private-folder.ts";

const OWN_TEXTS = ["socket", "pools", "webhook-port", "node", "log-level", "etcd-certificates"];
const TEXTS = [...OWN_TEXTS, ...Object.keys(ETCD_FLAGS)];
/** Lines of the log that say why it did not start. */
const SHOWN = 5;

/** Starts the stack in a process of its own, whose log is in the data folder, and waits until it serves. */
export async function detach(args: Arguments, context: CommandContext): Promise<ExitCode> {
  const { dataDir, io, self = [] } = context;
  const [program, ...before] = self;
  if (program === undefined) throw new BerthError("CONFIG_INVALID", "--detach needs berthctl as a program");
  const there = readStackFile(dataDir);
  if (there !== undefined && isStack(there.pid)) {
    io.stdout.write(`ready (pid ${there.pid}, which was there)\n`);
    const idle = withoutEffect(args, there);
    if (idle !== "")
      reportWarning(io, `${idle} had no effect on it; stop it first: berthctl down --data ${dataDir}`);
    return 0;
  }
  const pools = args.text("pools");
  if (pools !== undefined) await readPools(pools); // a file that cannot be read leaves no folder behind
  await ensurePrivate(dataDir);
  const log = join(dataDir, "stack.log");
  const flags = TEXTS.flatMap((flag) => {
    const text = args.text(flag);
    return text === undefined ? [] : [`--${flag}`, text];
  });
  const output = openSync(log, "w", 0o600);
  const child = spawn(program, [...before, "up", "--data", dataDir, ...flags], {
    detached: true,
    stdio: ["ignore", output, output],
  });
  closeSync(output);
  child.unref(); // ready or not, whoever typed it gets the terminal back
  const { kept = [] } = await untilReady(child, { context, log, waitMs: waitMsOf(args.text("wait")) });
  io.stdout.write(`ready (pid ${child.pid}, log ${log})\n`);
  for (const title of kept)
    reportWarning(
      io,
      `${title} is there and differs from ${pools}; it stays as it is; berthctl apply -f ${pools} --data ${dataDir} changes it`,
    );
  await tellIfUnreached(context);
  return 0;
}

/** A host serves without its etcd, for what has an address already; whoever has just named one may have misspelt it. */
async function tellIfUnreached({ etcd, io }: CommandContext): Promise<void> {
  if (etcd === undefined) return;
  const { withEtcd } = await import("../backend/etcd-backend.ts");
  try {
    await withEtcd(io, etcd, ({ registry }) => registry.get(""));
  } catch (error) {
    reportWarning(
      io,
      `${messageOf(error)}; this host goes on trying, and no container gets a new address until then`,
    );
  }
}

/** Throws CONFIG_INVALID if the stack ends before it serves, and TIMED_OUT, naming it, if it still starts when `waitMs` are over. */
async function untilReady(
  child: ChildProcess,
  {
    context: { dataDir, io },
    log,
    waitMs,
  }: { readonly context: CommandContext; readonly log: string; readonly waitMs: number },
): Promise<StackFile> {
  const ended = new AbortController();
  const over = once(child, "exit").then(() => {
    ended.abort(); // whoever typed it gets the terminal back at once
    throw notStarted(log);
  });
  over.catch(() => {}); // once it is no longer waited for, it may end as it likes
  // it is this process that starts it: there is nothing to be told
  const stderr = new Writable({ write: (_chunk, _encoding, done) => done() });
  const ready = waitForStack({ dataDir, io: { ...io, stderr } }, waitMs, ended.signal).catch(
    async (error: unknown) => {
      if (ended.signal.aborted) return await over;
      throw isNotReady(error) ? stillStarting(child, log, waitMs) : error;
    },
  );
  return await Promise.race([over, ready]);
}

function isNotReady(error: unknown): boolean {
  return error instanceof BerthError && error.code === "NOT_READY";
}

function stillStarting({ pid }: ChildProcess, log: string, waitMs: number): BerthError {
  const words = `the stack was not ready in ${shortDuration(waitMs)} (--wait) and is still starting (pid ${pid}); its log is ${log}`;
  return new BerthError("TIMED_OUT", words, { details: { path: log } });
}

/** Flags that a stack which runs already was not started with, as far as it tells. */
function withoutEffect(args: Arguments, { socket, node, etcd = "" }: StackFile): string {
  const has: Readonly<Record<string, string>> = { socket, node, etcd };
  const given = (flag: string) => {
    const text = args.text(flag);
    return flag === "socket" && text !== undefined ? resolve(text) : text;
  };
  const passedOn = TEXTS.filter((flag) => !flag.startsWith("etcd-")); // it does not tell its certificates
  const idle = passedOn.filter((flag) => given(flag) !== undefined && given(flag) !== has[flag]);
  return idle.map((flag) => `--${flag}`).join(", ");
}

function notStarted(log: string): BerthError {
  const lines = readFileSync(log, "utf8")
    .trimEnd()
    .split("\n")
    .slice(-SHOWN)
    .map((line) => line.replace(/^Error: /, ""));
  const words = `the stack ended before it was ready: ${lines.join(" | ")}; see ${log}`;
  return new BerthError("CONFIG_INVALID", words, { details: { path: log } });
}
