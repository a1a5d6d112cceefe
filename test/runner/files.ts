// SPDX-License-Identifier: Apache-2.0
import { globSync } from "node:fs";
import { join, matchesGlob } from "node:path";
import { GROUPS, type Group } from "./suites.ts";

export const ROOT = join(import.meta.dirname, "../..");
const FOLDERS = "{allocator,cli,ipam-plugin,kube,scripts,system,test,webhook}";

/** Every file of tests of any kind, from the root, in the order of their names. */
export function allFiles(): readonly string[] {
  return globSync(`${FOLDERS}/**/*{.,-}test.ts`, { cwd: ROOT }).sort();
}

/** The group that runs a file; undefined when none does. */
export function groupOf(file: string): Group | undefined {
  return GROUPS.find(({ files }) => files.some((glob) => matchesGlob(file, glob)));
}

export function filesOf(group: Group): readonly string[] {
  return allFiles().filter((file) => groupOf(file) === group);
}
