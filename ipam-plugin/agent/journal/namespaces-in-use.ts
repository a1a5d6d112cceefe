// SPDX-License-Identifier: Apache-2.0
import { readlinkSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { noneIfAbsent } from "../../../system/path-error.ts";
import { identityIn, outcomeOf } from "./seen-path.ts";

/** By PROC_PID_INIT_INO of Linux: from any other namespace of processes not every process of the host is to be seen. */
const ALL_PROCESSES = "pid:[4026531836]";

/** How often processes are listed at most: where each list has some that the one before had not, it is not known which there are. */
const LISTS = 10;

/**
 * The network namespaces in which there is any process of this host, and those that are mounted on it, as by `ip netns attach`, into which
 * one may go at any moment; by device and inode. Undefined: it cannot be known, for want of the right to look at some (CAP_SYS_PTRACE),
 * or because not all are to be seen from here. One that is none of these may be there still, held open by a process that is elsewhere.
 */
export async function namespacesInUse(
  proc = "/proc",
  list: ListNumbers = numbersIn,
): Promise<ReadonlySet<string> | undefined> {
  if (!seesAllProcesses(proc)) return undefined;
  try {
    const found = await ofProcesses(proc, list);
    return found && new Set([...found, ...(await mounted(proc))]);
  } catch {
    return undefined;
  }
}

/** The names in a folder that are numbers. */
type ListNumbers = (folder: string) => Promise<readonly string[]>;

/** One that ends before it is looked at may have begun another one since the list was made, which the next list has. */
async function ofProcesses(proc: string, list: ListNumbers): Promise<ReadonlySet<string> | undefined> {
  const found = new Set<string>();
  const seen = new Set<string>();
  for (let lists = 0; lists < LISTS; lists++) {
    const unseen = (await list(proc)).filter((pid) => !seen.has(pid));
    if (unseen.length === 0) return found;
    for (const pid of unseen) {
      seen.add(pid);
      const threads = await list(`${proc}/${pid}/task`);
      for (const thread of threads) addIdentity(found, `${proc}/${pid}/task/${thread}/ns/net`);
    }
  }
  return undefined;
}

/** Throws for what is there and cannot be looked at. */
function addIdentity(found: Set<string>, path: string): void {
  const seen = outcomeOf(path);
  if (seen === "hidden") throw new Error(`${path} cannot be looked at`);
  if (seen !== "absent") found.add(identityIn(seen)); // else it has ended meanwhile
}

/** In the mount namespace of the first process: all namespaces are of one file system, nsfs. */
async function mounted(proc: string): Promise<ReadonlySet<string>> {
  const own = outcomeOf(`${proc}/1/ns/net`);
  if (typeof own === "string") throw new Error("the first process cannot be looked at");
  const text = await readFile(`${proc}/1/mountinfo`, "utf8");
  const mounts = [...text.matchAll(/^\S+ \S+ \S+ net:\[(\d+)\] /gm)];
  return new Set(mounts.map(([, ino = "0"]) => identityIn({ dev: own.dev, ino: BigInt(ino) })));
}

/** Where processes of others are hidden (hidepid), the first one is, too. */
function seesAllProcesses(proc: string): boolean {
  try {
    return (
      readlinkSync(`${proc}/self/ns/pid`) === ALL_PROCESSES &&
      typeof outcomeOf(`${proc}/1/ns/net`) !== "string"
    );
  } catch {
    return false;
  }
}

async function numbersIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(noneIfAbsent<string[]>([])); // a process that has ended meanwhile
  return names.filter((name) => /^\d+$/.test(name));
}
