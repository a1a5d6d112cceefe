// SPDX-License-Identifier: Apache-2.0
// Namespaces of a run's own, where this user may make them (root): of processes, and of mounts, with a /tmp and a
// /run/netns that nobody else writes into. All that its tests start or leave is in there, under whatever name, nothing of
// another run is, and it ends with the run.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Furnished, killAll, type Left, mountPoints, runningIn, statusOf } from "./leftovers.ts";

export interface Namespaces {
  /** The command that runs this one in them. */
  commandFor(argv: readonly string[], folder: string): readonly string[];
  /** Sends a signal to what that command runs. */
  kill(child: ChildProcess, signal: NodeJS.Signals): void;
  processes(): readonly Left[];
  /** Mount points that were not there at the start. */
  mounts(): readonly string[];
  networkNamespaces(): readonly string[];
  /** What was in the folder at the start. */
  readonly furnished: Furnished;
  /** Ends all that runs in them, and they are gone. */
  close(): Promise<void>;
}

/**
 * $1 becomes /tmp; what follows stays to be seen in it, or has a folder to be written into if it is not there. The first process takes in orphans, and lives as
 * its input does.
 */
const FIRST = `
  set -e
  folder=$1; shift
  for kept; do
    there="$folder/\${kept#/tmp/}"
    if [ -d "$kept" ]; then mkdir -p "$there"; else mkdir -p "\${there%/*}"; fi
    [ -e "$kept" ] || continue
    [ -d "$kept" ] || touch "$there"
    mount --rbind "$kept" "$there"
  done
  mount --rbind "$folder" /tmp
  mkdir -p /run/netns
  mount -t tmpfs tmpfs /run/netns
  echo ready
  while read -r _; do :; done
`;

/** Undefined: they cannot be made here. `kept`: paths below /tmp. */
export async function openNamespaces(
  folder: string,
  { kept, absent }: PathsToKeep,
  env: NodeJS.ProcessEnv,
): Promise<Namespaces | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const own = [
    "--mount-proc",
    "--pid",
    "--fork",
    "--kill-child",
    "bash",
    "--norc", // with a socket for its input it takes itself for one of rsh's, and reads what somebody keeps for his own shells
    "-c",
    FIRST,
    "bash",
    folder,
    ...kept,
    ...absent,
  ];
  const child = spawn("unshare", own, { cwd: "/", env, stdio: ["pipe", "pipe", "ignore"], detached: true });
  const ended = new Promise<void>((resolve) => {
    child.once("error", () => resolve());
    child.once("close", () => resolve());
  });
  child.stdin.on("error", () => {});
  const isReady = await Promise.race([
    ended.then(() => false),
    once(createInterface({ input: child.stdout }), "line").then(() => true),
  ]);
  const first = isReady && child.pid !== undefined ? childOf(child.pid) : undefined;
  if (first !== undefined)
    return new OwnNamespaces(child, { first, ended, furnished: furnishedBy(kept, absent) });
  child.stdin.end();
  return undefined;
}

interface PathsToKeep {
  readonly kept: readonly string[];
  /** What is not there yet: tests may be told to write it. */
  readonly absent: readonly string[];
}

/**
 * Paths below /tmp that a run goes on seeing: this repository, this Node.js, and what variables name: caches, a home,
 * a file for output.
 */
export function pathsToKeep(env: NodeJS.ProcessEnv, others: readonly string[]): PathsToKeep {
  const named = Object.entries(env)
    .filter(([name]) => !["TMPDIR", "TMP", "TEMP", "OLDPWD"].includes(name))
    .flatMap(([, value = ""]) => value.split(":"));
  const all = [...new Set([...others, ...named])]
    .filter((path) => /^\/tmp\/./.test(path) && !path.split("/").includes(".."))
    .map((path) => path.replace(/\/+$/, ""))
    .sort();
  const outermost = all.filter((path) => !all.some((outer) => path.startsWith(`${outer}/`)));
  const there = all.filter((path) => existsSync(path));
  const isWithin = (path: string) => there.some((outer) => path.startsWith(`${outer}/`));
  return {
    kept: there.filter((path) => !isWithin(path)),
    absent: outermost.filter((path) => !existsSync(path) && !isWithin(path)),
  };
}

const fromTmp = (path: string) => path.slice("/tmp/".length);

function furnishedBy(kept: readonly string[], absent: readonly string[]): Furnished {
  const folders = [...kept, ...absent].flatMap((path) => {
    const names = fromTmp(path).split("/").slice(0, -1);
    return names.map((_, depth) => names.slice(0, depth + 1).join("/"));
  });
  return { made: new Set(folders), kept: new Set(kept.map(fromTmp)) };
}

/** Gives to the world what tests wrote where a variable told them to, which was not there before. */
export function handOut(folder: string, absent: readonly string[]): void {
  for (const path of absent) {
    const within = join(folder, fromTmp(path));
    if (!existsSync(within)) continue;
    cpSync(within, path, { recursive: true });
    rmSync(within, { recursive: true });
  }
}

interface Opened {
  readonly first: number;
  readonly ended: Promise<void>;
  readonly furnished: Furnished;
}

class OwnNamespaces implements Namespaces {
  readonly #child: ChildProcess;
  /** Their first process, as this one sees it. */
  readonly #first: number;
  readonly #ended: Promise<void>;
  readonly #mounted: ReadonlySet<string>;
  readonly furnished: Furnished;

  constructor(child: ChildProcess, { first, ended, furnished }: Opened) {
    this.#child = child;
    this.#first = first;
    this.#ended = ended;
    this.#mounted = new Set(this.#mountPoints());
    this.furnished = furnished;
  }

  commandFor(argv: readonly string[], folder: string): readonly string[] {
    const enter = ["nsenter", "--target", String(this.#first), "--mount", "--pid", "--"];
    return [...enter, "/bin/sh", "-c", 'cd "$0" && exec "$@"', folder, ...argv];
  }

  kill(child: ChildProcess, signal: NodeJS.Signals): void {
    const inner = child.pid === undefined ? undefined : childOf(child.pid);
    if (inner === undefined) child.kill(signal);
    else killAll([{ pid: inner }], signal);
  }

  processes(): readonly Left[] {
    return runningIn(`/proc/${this.#first}/root/proc`).filter(({ pid }) => pid !== 1);
  }

  mounts(): readonly string[] {
    return this.#mountPoints().filter(
      (point) => !this.#mounted.has(point) && !point.startsWith("/run/netns/"),
    );
  }

  networkNamespaces(): readonly string[] {
    return readdirSync(`/proc/${this.#first}/root/run/netns`);
  }

  async close(): Promise<void> {
    this.#child.stdin?.end();
    killAll([{ pid: this.#first }], "SIGKILL");
    await this.#ended;
  }

  #mountPoints(): readonly string[] {
    return mountPoints(readFileSync(`/proc/${this.#first}/mountinfo`, "utf8"));
  }
}

function childOf(pid: number): number | undefined {
  return runningIn("/proc").find((one) => statusOf("/proc", one.pid)?.parent === pid)?.pid;
}
