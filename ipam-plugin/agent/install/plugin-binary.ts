// SPDX-License-Identifier: Apache-2.0
import {
  access,
  constants,
  link,
  lstat,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
} from "node:fs/promises";
import { basename, join } from "node:path";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { removeLeftovers, writeDurably } from "../../../system/durable-file.ts";

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
const PLUGIN = "berth";
/** Behind the name of a plugin that an alias took the place of. */
const ASIDE = ".before-berth";
const NEXT = ".new-berth";
const EXECUTABLE = 0o755;
/** What hardening guides ask of CNI configurations; runtimes are root. */
const PRIVATE = 0o600;
/** Older temporary files are of a process that is no more; a younger one may be another agent's, still writing. */
const LEFTOVER_MS = 60_000;

/**
 * Puts the CNI plugin where the runtime looks for it: by a rename, for the old one may be running, which cannot be
 * written ("text file busy") and goes on with its call. One that is the same stays. Throws CONFIG_INVALID saying what
 * the folder needs.
 */
export async function installPlugin(
  { from, folder }: Installation,
  { clock, log }: { readonly clock: Pick<Clock, "now">; readonly log: Logger },
): Promise<void> {
  const content = await readFile(from).catch((cause: unknown) => {
    throw invalid(`BERTH_CNI_BINARY ${from} cannot be read: ${messageOf(cause)}`, cause);
  });
  const path = join(folder, PLUGIN);
  await withFolder("BERTH_CNI_BIN", folder, async () => {
    await removeLeftovers(path, clock.now() - LEFTOVER_MS);
    if (await isThere(path, { content, mode: EXECUTABLE })) return;
    await writeDurably(path, content, EXECUTABLE);
    log.info("CNI plugin installed", { path });
  });
}

/**
 * Makes the plugin known under other names, as links to it. What has such a name and is not ours stays, and is told: networks of that
 * plugin go on with it. With `replace` it is put aside, so that it can be put back.
 */
export async function installAliases(
  folder: string,
  { names, replace }: Aliases,
  log: Logger,
): Promise<void> {
  for (const name of names) {
    const path = join(folder, name);
    await withFolder("BERTH_CNI_BIN", folder, async () => {
      const found = await linkOf(path);
      if (found === PLUGIN) return;
      if (found !== undefined && !replace) {
        log.error("a CNI plugin of this name is installed, and stays", {
          path,
          remedy:
            "take it away, or set cni.replace of the chart, if its networks are to be Berth's; else take the name out of cni.aliases",
        });
        return;
      }
      if (found === undefined) await symlink(PLUGIN, path).catch(unlessLinked(path));
      else await takePlace(path, log);
      log.info("CNI plugin installed", { path });
    });
  }
}

/** What the link leads to; "" for a plugin that is no link, undefined: nothing has the name. */
async function linkOf(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  return found.isSymbolicLink() ? await readlink(path) : "";
}

/** At no moment is there none of the name. Its installer may write it again later: what is put aside is the newest. */
async function takePlace(path: string, log: Logger): Promise<void> {
  const [aside, next] = [`${path}${ASIDE}`, `${path}${NEXT}`];
  for (const old of [aside, next]) await rm(old, { force: true });
  await link(path, aside);
  await symlink(PLUGIN, next);
  await rename(next, path);
  log.warn("a CNI plugin of another system was put aside", { path, file: aside });
}

/** Another agent may have been faster. */
function unlessLinked(path: string): (error: unknown) => Promise<void> {
  return async (error) => {
    if ((await linkOf(path)) !== PLUGIN) throw error;
  };
}

/** Where the conflist goes: under the name that it has. */
export function conflistPath({ from, folder }: Installation): string {
  return join(folder, basename(from));
}

/** Finds out what would keep the conflist from being written once the agent is ready. Throws as installPlugin. */
export async function prepareConflist(conflist: Installation, clock: Pick<Clock, "now">): Promise<void> {
  await withFolder("BERTH_CNI_CONF", conflist.folder, async () => {
    await removeLeftovers(conflistPath(conflist), clock.now() - LEFTOVER_MS);
    await access(conflist.folder, constants.W_OK | constants.X_OK);
  });
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
  if (code !== "EACCES" && code !== "EPERM") return `cannot be written: ${messageOf(error)}`;
  const owner = await stat(folder).then(
    ({ uid }) => `belongs to uid ${uid}`,
    () => "is closed",
  );
  return `${owner} and may not be written; give the agent the capability DAC_OVERRIDE, or the folder to root`;
}

function invalid(words: string, cause: unknown): BerthError {
  return new BerthError("CONFIG_INVALID", words, { cause });
}
