// SPDX-License-Identifier: Apache-2.0
import { access, constants, link, lstat, readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { createDurably, removeLeftovers, writeDurably } from "../../../system/durable-file.ts";

/** A file that is put into a folder of the host. Absolute. */
export interface Installation {
  readonly from: string;
  readonly folder: string;
}

/** Other names that the plugin has in its folder, for configurations of other IPAM plugins. */
export interface Aliases {
  readonly names: readonly string[];
  /** A plugin of that name that is there is put aside. */
  readonly replace: boolean;
}

/** As runtimes look for it: by the `type` of a configuration. */
export const PLUGIN = "berth";
/** Behind the name of a plugin that an alias took the place of. */
const ASIDE = ".before-berth";
/** In every version of the plugin, which prints it where it is called by hand. */
const MARK = "CNI berth plugin version ";
/** The plugin has 50 KiB; those of others may have many MiB, which need not be looked through. */
const LONGEST_PLUGIN = 4 * 1024 * 1024;
const EXECUTABLE = 0o755;
/** What hardening guides ask of CNI configurations; runtimes are root. */
const PRIVATE = 0o600;
interface Ports {
  readonly clock: Pick<Clock, "now">;
  readonly log: Logger;
}

/**
 * Puts the CNI plugin where the runtime looks for it: by a rename, for the old one may be running, which cannot be
 * written ("text file busy") and goes on with its call. One that is the same stays. Throws CONFIG_INVALID saying what
 * the folder needs.
 */
export async function installPlugin({ from, folder }: Installation, { clock, log }: Ports): Promise<void> {
  const content = await builtPlugin(from);
  const path = join(folder, PLUGIN);
  await withFolder("BERTH_CNI_BIN", folder, async () => {
    await removeLeftovers(path, clock.now());
    if (await isThere(path, { content, mode: EXECUTABLE })) return;
    await writeDurably(path, content, EXECUTABLE);
    log.info("CNI plugin installed", { path });
  });
}

/**
 * Makes the plugin known under other names. Each is a copy: whoever installs another plugin of the name with `cp` writes through a link, symbolic
 * or hard, and would leave that plugin in the place of Berth's. What has such a name and is not ours stays, and is told: networks of that plugin
 * go on with it. With `replace` it is put aside, so that it can be put back.
 */
export async function installAliases(
  { from, folder }: Installation,
  { names, replace }: Aliases,
  { clock, log }: Ports,
): Promise<void> {
  const content = await builtPlugin(from);
  for (const name of names) {
    const path = join(folder, name);
    await withFolder("BERTH_CNI_BIN", folder, async () => {
      await removeLeftovers(path, clock.now());
      if (await isInstalled(path, content, { replace, log })) log.info("CNI plugin installed", { path });
    });
  }
}

/** False: it was there already, or another system's plugin stays. */
async function isInstalled(
  path: string,
  content: Buffer,
  { replace, log }: { readonly replace: boolean; readonly log: Logger },
): Promise<boolean> {
  const isAbsent = (await lstat(path).catch(() => undefined)) === undefined;
  // false: another agent, or an installer, was faster
  if (isAbsent && (await createDurably(path, content, EXECUTABLE))) return true;
  const isOurs = await isBerth(path);
  if (!isOurs && !replace) {
    log.error("a CNI plugin of this name is installed, and stays", {
      path,
      remedy:
        "take it away, or set cni.replace of the chart, if its networks are to be Berth's; else take the name out of cni.aliases",
    });
    return false;
  }
  const found = await lstat(path);
  const isLink = found.isSymbolicLink() || found.nlink > 1;
  if (isOurs && !isLink && (await isThere(path, { content, mode: EXECUTABLE }))) return false;
  const aside = isOurs ? undefined : await putAside(path);
  await writeDurably(path, content, EXECUTABLE);
  if (aside !== undefined) log.warn("a CNI plugin of another system was put aside", { path, file: aside });
  return true;
}

/** Whether what is there can be run and is the plugin, in any version; with `orOthers`, a plugin of another system will do, which stays. */
export async function isServedUnder(
  path: string,
  { orOthers }: { readonly orOthers: boolean },
): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || !found.isFile() || (found.mode & 0o111) === 0) return false;
  return orOthers || (await isBerth(path));
}

/** Whether the name is, or leads to, the plugin in any version. */
async function isBerth(path: string): Promise<boolean> {
  try {
    const { size } = await stat(path);
    return size <= LONGEST_PLUGIN && (await readFile(path)).includes(MARK);
  } catch {
    return false; // what cannot be read, or leads nowhere, is not for us to replace
  }
}

/** At no moment is there none of the name. Its installer may write it again later: what is put aside is the newest. */
async function putAside(path: string): Promise<string> {
  const aside = `${path}${ASIDE}`;
  await rm(aside, { force: true });
  await link(path, aside);
  return aside;
}

async function builtPlugin(from: string): Promise<Buffer> {
  return await readFile(from).catch((cause: unknown) => {
    throw invalid(`BERTH_CNI_BINARY ${from} cannot be read: ${messageOf(cause)}`, cause);
  });
}

/** Where the conflist goes: under the name that it has. */
export function conflistPath({ from, folder }: Installation): string {
  return join(folder, basename(from));
}

/**
 * Finds out what would keep the conflist from being written once the agent is ready, and removes what a crash left beside it and beside
 * the agent's record of it. Throws as installPlugin.
 */
export async function prepareConflist(
  conflist: Installation & { readonly record: string },
  clock: Pick<Clock, "now">,
): Promise<void> {
  const now = clock.now();
  await withFolder("BERTH_CNI_CONF", conflist.folder, async () => {
    await removeLeftovers(conflistPath(conflist), now);
    await access(conflist.folder, constants.W_OK | constants.X_OK);
  });
  const { record } = conflist;
  await withFolder("BERTH_DATA", dirname(record), () => removeLeftovers(record, now));
}

/**
 * Puts the text where the runtime looks for configurations; a temporary file has no name that a runtime reads. False:
 * it was there already, and a runtime that watches the folder has nothing to load again. Throws the errors of node:fs.
 */
export async function installConflist(conflist: Installation, text: string): Promise<boolean> {
  const path = conflistPath(conflist);
  if (await isThere(path, { content: Buffer.from(text), mode: PRIVATE })) return false;
  await writeDurably(path, text, PRIVATE);
  return true;
}

async function isThere(
  path: string,
  { content, mode }: { readonly content: Buffer; readonly mode: number },
): Promise<boolean> {
  try {
    const [found, { mode: bits }] = await Promise.all([readFile(path), stat(path)]);
    return (bits & 0o777) === mode && found.equals(content);
  } catch {
    return false; // whatever is wrong with it, a new one takes its place
  }
}

async function withFolder(variable: string, folder: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw invalid(`${variable} ${folder} ${await whyNot(folder, error)}`, error);
  }
}

async function whyNot(folder: string, error: unknown): Promise<string> {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT" || code === "ENOTDIR") return "is no folder here; mount the host's folder there";
  if (code === "EROFS") return "is read-only; mount it so that the agent may write";
  if (code !== "EACCES" && code !== "EPERM") return `cannot be written: ${reasonOf(error)}`;
  const owner = await stat(folder).then(
    ({ uid }) => `belongs to uid ${uid}`,
    () => "is closed",
  );
  return `${owner} and may not be written; give the agent the capability DAC_OVERRIDE, or the folder to root`;
}

/** Without the path: a temporary file has another name each time, and who tells of changes would tell of it each time. */
function reasonOf(error: unknown): string {
  const words = messageOf(error);
  const end = error instanceof Error && "syscall" in error ? words.indexOf(`, ${error.syscall}`) : -1;
  return end < 0 ? words : words.slice(0, end);
}

function invalid(words: string, cause: unknown): BerthError {
  return new BerthError("CONFIG_INVALID", words, { cause });
}
