// SPDX-License-Identifier: Apache-2.0
// What a run of tests has left on this host. Other runs happen at the same time: only what bears this run's mark is its.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

export interface Mark {
  /** In the environment of its processes, as BERTH_RUN. */
  readonly id: string;
  /** Its temporary directory. */
  readonly folder: string;
  /** The sessions that it started: processes without an environment are known by them. */
  readonly sessions: ReadonlySet<number>;
}

export interface Left {
  readonly pid: number;
  readonly command: string;
}

/** A process that was just killed is not gone at once. */
const GRACE_MS = 5_000;

/** The processes of a run that still live, after some time to end. */
export async function processesLeft(mark: Mark): Promise<readonly Left[]> {
  const until = Date.now() + GRACE_MS;
  for (;;) {
    const left = processesOf(mark);
    if (left.length === 0 || Date.now() > until) return left;
    await pause(50);
  }
}

export function killAll(left: readonly Left[]): void {
  for (const { pid } of left) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // it has ended meanwhile
    }
  }
}

export function processesOf(mark: Mark): readonly Left[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && isOf(mark, pid))
    .map((pid) => ({ pid, command: (read(pid, "cmdline") ?? "").replaceAll("\0", " ").trim() }));
}

function isOf({ id, sessions }: Mark, pid: number): boolean {
  // pid (command) state parent group session …; the command may have anything in it
  const [state, , , session] =
    read(pid, "stat")
      ?.replace(/^.*\) /s, "")
      .split(" ") ?? [];
  if (state === undefined || state === "Z" || state === "X") return false;
  return (
    sessions.has(Number(session)) || (read(pid, "environ")?.split("\0").includes(`BERTH_RUN=${id}`) ?? false)
  );
}

/** Undefined: it is gone, or not to be read by us. */
function read(pid: number, what: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${what}`, "utf8");
  } catch {
    return undefined;
  }
}

/** Mount points in the run's folder. */
export function mountsLeft({ folder }: Mark): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${folder}/`));
}

/** Named network namespaces that have the run's id in their names. */
export function namespacesLeft({ id }: Mark): readonly string[] {
  try {
    return readdirSync("/run/netns").filter((name) => name.includes(id));
  } catch {
    return [];
  }
}

/** What is in the temporary directory, by kind: `berth-stack-* (12)`. */
export function filesLeft({ folder }: Mark): readonly string[] {
  const kinds = new Map<string, number>();
  for (const name of readdirSync(folder)) {
    const kind = name.replace(/-[A-Za-z0-9]{6}$/, "-*");
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return [...kinds].map(([kind, count]) => `${join(folder, kind)} (${count})`);
}
