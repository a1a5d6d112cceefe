// SPDX-License-Identifier: Apache-2.0
// What a run of tests has left on this host. Other runs happen at the same time: where a run has no namespaces of its own
// (namespaces.ts), only what bears its mark is known as its.
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

/** What `running` gives once it gives nothing more, or after some time in which it could have ended. */
export async function leftAfterGrace(running: () => readonly Left[]): Promise<readonly Left[]> {
  const until = Date.now() + GRACE_MS;
  for (;;) {
    const left = running();
    if (left.length === 0 || Date.now() > until) return left;
    await pause(50);
  }
}

export function killAll(left: readonly Pick<Left, "pid">[], signal: NodeJS.Signals = "SIGKILL"): void {
  for (const { pid } of left) {
    try {
      process.kill(pid, signal);
    } catch {
      // it has ended meanwhile
    }
  }
}

/** The processes that bear a run's mark. */
export function processesOf({ id, sessions }: Mark): readonly Left[] {
  return runningIn("/proc").filter(
    ({ pid }) =>
      pid !== process.pid &&
      (sessions.has(statusOf("/proc", pid)?.session ?? 0) ||
        (read(`/proc/${pid}/environ`)?.split("\0").includes(`BERTH_RUN=${id}`) ?? false)),
  );
}

/** All that live, as this /proc has them. */
export function runningIn(proc: string): readonly Left[] {
  return readdirSync(proc)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => statusOf(proc, pid) !== undefined)
    .map((pid) => ({ pid, command: (read(`${proc}/${pid}/cmdline`) ?? "").replaceAll("\0", " ").trim() }));
}

interface Status {
  readonly parent: number;
  readonly session: number;
}

/** Undefined: it has ended. */
export function statusOf(proc: string, pid: number): Status | undefined {
  // pid (command) state parent group session …; the command may have anything in it
  const [state, parent, , session] =
    read(`${proc}/${pid}/stat`)
      ?.replace(/^.*\) /s, "")
      .split(" ") ?? [];
  if (state === undefined || state === "Z" || state === "X") return undefined;
  return { parent: Number(parent), session: Number(session) };
}

/** Undefined: it is gone, or not to be read by us. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Of a file mountinfo. */
export function mountPoints(mountinfo: string): readonly string[] {
  return mountinfo.split("\n").flatMap((line) => line.split(" ")[4] ?? []);
}

/** Mount points in the run's folder. */
export function mountsLeft({ folder }: Mark): readonly string[] {
  return mountPoints(readFileSync("/proc/self/mountinfo", "utf8")).filter((point) =>
    point.startsWith(`${folder}/`),
  );
}

/** Named network namespaces that have the run's id in their names. */
export function namespacesLeft({ id }: Mark): readonly string[] {
  try {
    return readdirSync("/run/netns").filter((name) => name.includes(id));
  } catch {
    return [];
  }
}

/** What was put into the temporary directory before the tests: paths from it. */
export interface Furnished {
  /** Folders that were made for what is in them. */
  readonly made: ReadonlySet<string>;
  /** What is there is of the world outside. */
  readonly kept: ReadonlySet<string>;
}

/** What is new in the temporary directory, by kind: `berth-stack-* (12)`. */
export function filesLeft(folder: string, { made, kept }: Furnished): readonly string[] {
  const kinds = new Map<string, number>();
  const folders = [""];
  for (let within = folders.pop(); within !== undefined; within = folders.pop()) {
    for (const name of readdirSync(join(folder, within))) {
      const path = join(within, name);
      if (kept.has(path)) continue;
      if (made.has(path)) folders.push(path);
      else {
        const kind = path.replace(/-[A-Za-z0-9]{6}$/, "-*");
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      }
    }
  }
  return [...kinds].map(([kind, count]) => `${join(folder, kind)} (${count})`);
}
