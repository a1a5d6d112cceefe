// SPDX-License-Identifier: Apache-2.0
import { statfsSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { formatFixed } from "./number-format.ts";

/** Where numbers come from: without it they say nothing. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  /** Of the folder that both sides write to. */
  readonly fileSystem: string;
}

/** f_type of statfs(2) -> name. */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  61267: "ext4",
  1481003842: "xfs",
  2435016766: "btrfs",
  16914836: "tmpfs",
  2035054128: "overlayfs",
};

export function describeMachine(folder: string): Machine {
  const { type } = statfsSync(folder);
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? "unknown",
    cores: all.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    fileSystem: FILE_SYSTEMS[type] ?? `type ${type.toString(16)}`,
  };
}

/** Processes that ran or waited, averaged over the last minute. */
export function loadNow(): number {
  return loadavg()[0] ?? Number.NaN;
}

/** One line for people. */
export function machineLine({ cpu, cores, memoryGiB, kernel, node, fileSystem }: Machine): string {
  return `${cpu}, ${cores} cores, ${memoryGiB} GiB, Linux ${kernel}, Node.js ${node}, files on ${fileSystem}`;
}

export function loadLine(before: number, after: number): string {
  return `load (one minute) ${formatFixed(before, 2)} before, ${formatFixed(after, 2)} after`;
}
