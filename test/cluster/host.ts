// SPDX-License-Identifier: Apache-2.0
// What a cluster changes on this host outside its machines: a few settings of the kernel, and cgroups.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StateFolder } from "./state.ts";

/** What a kubelet writes, whatever was there. */
const SYSCTLS = [
  "vm/overcommit_memory",
  "vm/panic_on_oom",
  "kernel/panic",
  "kernel/panic_on_oops",
  "kernel/keys/root_maxkeys",
  "kernel/keys/root_maxbytes",
].map((name) => `/proc/sys/${name}`);
const CGROUPS = "/sys/fs/cgroup";

/** Writes the values down, unless an earlier start of the same cluster did. */
export function saveSysctls(state: StateFolder): void {
  const { sysctls } = state.read();
  const now = Object.fromEntries(SYSCTLS.map((file) => [file, readFileSync(file, "utf8").trim()]));
  state.write({ sysctls: { ...now, ...sysctls } });
}

export function restoreSysctls(state: StateFolder): void {
  for (const [file, value] of Object.entries(state.read().sysctls)) {
    if (readFileSync(file, "utf8").trim() !== value) writeFileSync(file, value);
  }
}

/** Settings that are not what they were before the cluster, in words. */
export function changedSysctls(state: StateFolder): readonly string[] {
  return Object.entries(state.read().sysctls).flatMap(([file, before]) => {
    const now = readFileSync(file, "utf8").trim();
    return now === before ? [] : [`${file} is ${now} and was ${before}`];
  });
}

/** `v1`: a folder for each controller; `v2`: one for all. */
export function cgroupVersion(): "v1" | "v2" {
  return existsSync(join(CGROUPS, "cgroup.controllers")) ? "v2" : "v1";
}

/** As a kubelet's `cgroupRoot` names it. Two kubelets with one root kill each other's pods. */
export function cgroupOf(node: string): string {
  return `/berth-cluster-${node}`;
}

/** A root for all cgroups of a node's pods. */
export function makeCgroup(node: string): void {
  for (const root of hierarchies()) {
    const folder = join(root, cgroupOf(node));
    mkdirSync(folder, { recursive: true });
    // without them no process can be put into a cpuset
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      if (root.endsWith("/cpuset")) writeFileSync(join(folder, file), readFileSync(join(root, file), "utf8"));
    }
  }
}

/** Cgroups can be removed once no process is in them. */
export function removeCgroups(node: string): void {
  for (const folder of cgroupsOf(node)) removeTree(folder);
}

/** What is left of the node's. */
export function cgroupsOf(node: string): readonly string[] {
  return hierarchies()
    .map((root) => join(root, cgroupOf(node)))
    .filter((folder) => existsSync(folder));
}

function hierarchies(): readonly string[] {
  if (cgroupVersion() === "v2") return [CGROUPS];
  return readdirSync(CGROUPS, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(CGROUPS, name));
}

/** The files in a cgroup go with it; only the folders within have to go before. */
function removeTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  }
  try {
    rmdirSync(folder);
  } catch (error) {
    // its last process may be on its way out; whoever looks afterwards finds the folder
    if (!(error instanceof Error && "code" in error && error.code === "EBUSY")) throw error;
  }
}
