// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";

/** A process of this host: the pid alone may be another one's tomorrow. */
export interface Seen {
  readonly pid: number;
  /** In ticks after the boot. */
  readonly startTime: string;
  readonly args: readonly string[];
}

/** Processes that have the word among their arguments. */
export function processesWith(word: string): readonly Seen[] {
  return allPids().flatMap((pid) => {
    const seen = look(pid);
    return seen?.args.includes(word) === true ? [seen] : [];
  });
}

/** Processes that were started with that setting, or by such processes. */
export function processesIn(variable: string, value: string): readonly Seen[] {
  const setting = `${variable}=${value}`;
  return allPids().flatMap((pid) => {
    const seen = look(pid);
    return seen !== undefined && words(`/proc/${pid}/environ`).includes(setting) ? [seen] : [];
  });
}

/** Processes of a pod's container: the node has a cgroup for all of them, and their command ends like that. */
export function containersOf(node: string, commandEnd: string): readonly Seen[] {
  return allPids().flatMap((pid) => {
    const seen = look(pid);
    const isIt = seen?.args.filter((word) => word !== "").at(-1) === commandEnd;
    return isIt && textOf(`/proc/${pid}/cgroup`).includes(`/berth-cluster-${node}/`) ? [seen] : [];
  });
}

export function isSame({ pid, startTime }: Seen): boolean {
  return look(pid)?.startTime === startTime;
}

/** Ends exactly that process; one that is gone is no fault. */
export function kill(seen: Seen, signal: NodeJS.Signals = "SIGKILL"): void {
  if (!isSame(seen)) return;
  try {
    process.kill(seen.pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** undefined: there is none, or it has ended and waits for its parent. */
export function look(pid: number): Seen | undefined {
  try {
    // the name, in parentheses, may hold anything; the state is the first field after it, the start time the 20th
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const startTime = fields[19];
    if (startTime === undefined || fields[0] === "Z" || fields[0] === "X") return undefined;
    return { pid, startTime, args: words(`/proc/${pid}/cmdline`) };
  } catch {
    return undefined;
  }
}

function allPids(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function words(file: string): readonly string[] {
  const text = textOf(file);
  return text === "" ? [] : text.split("\0");
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
