// SPDX-License-Identifier: Apache-2.0
import { readlinkSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { noneIfAbsent } from "../../../system/path-error.ts";
import { identityIn, outcomeOf } from "./seen-path.ts";

/** By PROC_PID_INIT_INO of Linux: from any other namespace of processes not every process of the host is to be seen. */
const ALL_PROCESSES = "pid:[4026531836]";

/**
 * The network namespaces in which there is any process of this host, by device and inode. Undefined: it cannot be known, for want of
 * the right to look at some (CAP_SYS_PTRACE), or because not all are to be seen from here. One in which there is none may be there
 * still, mounted or held open by one that is elsewhere.
 */
export async function namespacesInUse(proc = "/proc"): Promise<ReadonlySet<string> | undefined> {
  if (!seesAllProcesses(proc)) return undefined;
  try {
    return await identitiesIn(proc);
  } catch {
    return undefined;
  }
}

/** Throws for what is there and cannot be looked at. */
async function identitiesIn(proc: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const pid of await numbersIn(proc))
    for (const thread of await numbersIn(`${proc}/${pid}/task`)) {
      const path = `${proc}/${pid}/task/${thread}/ns/net`;
      const seen = outcomeOf(path);
      if (seen === "hidden") throw new Error(`${path} cannot be looked at`);
      if (seen !== "absent") found.add(identityIn(seen)); // else it has ended meanwhile
    }
  return found;
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
