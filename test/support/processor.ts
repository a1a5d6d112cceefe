// SPDX-License-Identifier: Apache-2.0
// The share of the processors that a measured process gets, and how long it waited for one, on a machine that others use as well.
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";

/** Milliseconds in which the main thread of a process could have run, and others had the processors (sched-stats.rst: the second figure). */
export function waitedOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}

/** Milliseconds that all threads of a process ran since it began, in user and system mode; Linux counts them in hundredths of a second. */
export function processorTimeOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Of version 1, and of version 2: the folder, and the file that takes the largest share. The root of version 1 is no group. */
const GROUPS = [
  { root: "/sys/fs/cgroup/cpu", file: "cpu.shares", most: 262_144 },
  { root: "/sys/fs/cgroup", file: "cpu.weight", most: 10_000 },
].filter(({ root }) => existsSync(`${root}/cgroup.procs`));

/**
 * Puts a process, and what it starts from then on, before all others of the machine, where control groups can be written. Answers with what
 * puts it back.
 */
export function prefer(pid: number): () => void {
  for (const { root, file, most } of GROUPS) {
    // of a process in a namespace of its own others may have the number, and a run that was killed leaves its folder
    const folder = `${root}/berth-${pid}-${randomUUID()}`;
    const giveBack = () => {
      if (existsSync(`/proc/${pid}`)) writeFileSync(`${root}/cgroup.procs`, String(pid));
      if (existsSync(folder)) rmdirSync(folder);
    };
    try {
      mkdirSync(folder);
      writeFileSync(`${folder}/${file}`, String(most));
      writeFileSync(`${folder}/cgroup.procs`, String(pid));
      return giveBack;
    } catch {
      // no right to, or another version: the machine shares as it likes
      if (existsSync(folder)) rmdirSync(folder);
    }
  }
  return () => {};
}

/** The same process is one of many again, whoever started it. */
export function preferNot(pid: number): void {
  for (const { root } of GROUPS) {
    try {
      writeFileSync(`${root}/cgroup.procs`, String(pid));
      return;
    } catch {
      // as above
    }
  }
}
