// SPDX-License-Identifier: Apache-2.0
import { lstatSync, readlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { namespacesInUse } from "./namespaces-in-use.ts";
import { identityIn, outcomeOf } from "./seen-path.ts";

/**
 * `unknown`: it cannot be told, because the folder is not there either (another mount namespace), or may not be looked into, or
 * because it was a process that named the namespace, and that has ended.
 */
export type Presence = "present" | "gone" | "unknown";

/** Another one each time that this host starts. */
export async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}

/** What the agent looks at on its host. */
export interface Host {
  /** `was`: the identity of what is looked for, where it is known. Another thing at its path is not it. */
  look(path: string, was?: string): Promise<Presence>;
  /** What the path leads to, by device and inode; undefined when it leads nowhere. */
  identity(path: string): Promise<string | undefined>;
  /** Whether the process is gone by which the path names a namespace; false where none does. */
  hasProcessEnded(path: string): boolean;
  /** The network namespaces in which any process is, and those that are mounted, as `identity` has them; undefined: it cannot be known. */
  namespacesInUse(): Promise<ReadonlySet<string> | undefined>;
  /** The file's text. Rejects with the error of the file system. */
  read(path: string): Promise<string>;
}

/** The host as this process sees it. */
export const linuxHost: Host = {
  async look(path, was) {
    const seen = outcomeOf(path);
    if (seen === "hidden") return "unknown";
    const isThere = seen !== "absent";
    if (isThere && !isAnother(identityIn(seen), was)) return "present";
    if (processIn(path) !== undefined) return "unknown";
    if (isThere) return "gone";
    return (await identityOf(dirname(path))) === undefined ? "unknown" : "gone";
  },
  identity: identityOf,
  hasProcessEnded(path) {
    const [folder] = /^\/proc\/\d+(?=\/)/.exec(processIn(path) ?? "") ?? [];
    return folder !== undefined && outcomeOf(folder) === "absent"; // its number may come again: that says nothing
  },
  namespacesInUse: () => namespacesInUse(),
  read(path) {
    return readFile(path, "utf8");
  },
};

/** Such a path goes with its process, while others may be in the namespace; and may be another one's by now. */
export function isOfProcess(path: string): boolean {
  return path.startsWith("/proc/");
}

/** The path by which a process names what is there: the path itself, or where it is a link to; undefined: it has a name of its own. */
export function processIn(path: string): string | undefined {
  if (isOfProcess(path)) return path;
  const target = targetOf(path);
  return isOfProcess(target) ? target : undefined;
}

/** Where a link leads; empty for what is none, as most are: to read one that is none throws, which costs three times the look. */
function targetOf(path: string): string {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : "";
  } catch {
    return "";
  }
}

async function identityOf(path: string): Promise<string | undefined> {
  const seen = outcomeOf(path);
  return typeof seen === "string" ? undefined : identityIn(seen);
}

/**
 * Of one file system, and not the same there. A namespace is mounted on a file: who did not see the mount then, or does not see it
 * now, sees the file, which says nothing of the namespace. The same number may be another one's, too, when the first is gone.
 */
function isAnother(now: string, was: string | undefined): boolean {
  return was !== undefined && was !== now && deviceOf(was) === deviceOf(now);
}

function deviceOf(identity: string): string | undefined {
  return identity.split(":", 1)[0];
}
