// SPDX-License-Identifier: Apache-2.0
import { type BigIntStats, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";

/** `unknown`: it cannot be told, because the folder is not there either (another mount namespace), or may not be looked into. */
export type Presence = "present" | "gone" | "unknown";

/** What the agent looks at on its host. */
export interface Host {
  look(path: string): Promise<Presence>;
  /** What the path leads to, by device and inode; undefined when it leads nowhere. */
  identity(path: string): Promise<string | undefined>;
  /** The file's text. Rejects with the error of the file system. */
  read(path: string): Promise<string>;
}

/** The host as this process sees it. */
export const linuxHost: Host = {
  async look(path) {
    const seen = outcomeOf(path);
    if (typeof seen !== "string") return "present";
    if (seen === "hidden") return "unknown";
    // /proc/<pid> goes with its process; any other folder stays when a namespace goes.
    if (path.startsWith("/proc/")) return "gone";
    return (await identityOf(dirname(path))) === undefined ? "unknown" : "gone";
  },
  identity: identityOf,
  read(path) {
    return readFile(path, "utf8");
  },
};

/**
 * Synchronous: namespaces lie in memory (nsfs, procfs) and are looked at in 5 µs, while two trips to a thread and back
 * would be a fifth of an ADD, and more on a busy node.
 */
function outcomeOf(path: string): BigIntStats | "absent" | "hidden" {
  try {
    return statSync(path, { bigint: true });
  } catch (error) {
    // A process of another user keeps its namespaces to itself: that says nothing of whether they are there.
    const denied =
      error instanceof Error && "code" in error && ["EACCES", "EPERM"].includes(String(error.code));
    return denied ? "hidden" : "absent";
  }
}

async function identityOf(path: string): Promise<string | undefined> {
  const seen = outcomeOf(path);
  return typeof seen === "string" ? undefined : `${seen.dev}:${seen.ino}`;
}
