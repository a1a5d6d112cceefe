// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";

/** What this process has used of the processor, and what those that it started and saw the end of have; in seconds. */
export function processorSeconds(): { readonly own: number; readonly children: number } {
  // utime, stime, cutime and cstime of proc_pid_stat(5), in ticks of a hundredth of a second
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15).map(Number);
  return { own: (user + system) / 100, children: (childUser + childSystem) / 100 };
}
