// SPDX-License-Identifier: Apache-2.0
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";

/** `unknown`: it cannot be told, because the folder is not there either (another mount namespace). */
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
    if ((await identityOf(path)) !== undefined) return "present";
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
async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
