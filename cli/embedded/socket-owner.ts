// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, resolve } from "node:path";

/** SO_ACCEPTCON of the kernel: a socket that is listened on. */
const LISTENS = 0x10000;

/** The process of this host that listens on a unix socket; undefined: none, or one that this user may not look into. */
export function listenerOn(path: string): number | undefined {
  const inode = listeningInode(readOr("/proc/net/unix"), path);
  if (inode === undefined) return undefined;
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const found = pids.find((pid) => hasOpen(join("/proc", pid, "fd"), `socket:[${inode}]`));
  return found === undefined ? undefined : Number(found);
}

/** The data folder of a stack, by what it was started with; undefined: its default, or it is no stack. */
export function dataFolderOf(pid: number): string | undefined {
  const argv = readOr(`/proc/${pid}/cmdline`).split("\0");
  const at = argv.indexOf("--data");
  const inline = argv.find((arg) => arg.startsWith("--data="))?.slice("--data=".length);
  const folder = at === -1 ? inline : argv[at + 1];
  return folder === undefined ? undefined : resolve(linkOf(`/proc/${pid}/cwd`), folder);
}

/** Lines are: Num RefCount Protocol Flags Type St Inode Path */
function listeningInode(table: string, path: string): string | undefined {
  const rows = table.split("\n").map((line) => line.split(/ +/));
  const isIt = ([, , , flags = "", , , , ...name]: readonly string[]) =>
    name.join(" ") === path && (Number.parseInt(flags, 16) & LISTENS) !== 0;
  return rows.find(isIt)?.[6];
}

function hasOpen(folder: string, target: string): boolean {
  try {
    return readdirSync(folder).some((fd) => linkOf(join(folder, fd)) === target);
  } catch {
    return false; // it has ended, or is another user's
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // gone meanwhile
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
