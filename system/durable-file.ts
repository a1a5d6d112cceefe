// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { link, lstat, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

const SUFFIX = ".tmp";
/** No write takes so long. One that does all the same fails when its temporary file is removed, and can be tried again. */
export const LEFTOVER_MS = 60_000;

/**
 * Replaces a file in one step that survives a crash: whoever reads it finds the old content or the new one, whole.
 * `mode` is exact, whatever the umask. Throws the errors of node:fs, and leaves no temporary file behind then.
 */
export async function writeDurably(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const temporary = await writtenBeside(path, content, mode);
  await orRemoved(temporary, () => rename(temporary, path));
  await syncFolder(dirname(path));
}

/** The same if nothing has the name. False: something has it, and stays. */
export async function createDurably(
  path: string,
  content: string | Uint8Array,
  mode: number,
): Promise<boolean> {
  const temporary = await writtenBeside(path, content, mode);
  // a rename would replace what somebody has put there meanwhile
  const isCreated = await orRemoved(temporary, () => link(temporary, path).then(() => true, falseIfThere));
  await rm(temporary, { force: true });
  if (isCreated) await syncFolder(dirname(path));
  return isCreated;
}

function falseIfThere(error: unknown): false {
  if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
  throw error;
}

/** In the same folder, because neither a rename nor a link crosses file systems. */
async function writtenBeside(path: string, content: string | Uint8Array, mode: number): Promise<string> {
  const temporary = join(dirname(path), `${prefixOf(path)}${randomUUID()}${SUFFIX}`);
  await orRemoved(temporary, async () => {
    const file = await open(temporary, "wx", mode);
    try {
      await file.chmod(mode);
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
  }).catch((error: unknown) => {
    // node names no path when a file that is open cannot be written
    throw error instanceof Error && !("path" in error) ? Object.assign(error, { path }) : error;
  });
  return temporary;
}

async function orRemoved<T>(temporary: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** As `writtenBeside` calls them: what others call alike, or have made a folder, is theirs. */
const BY_US = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Removes the temporary files beside it that a crash has left behind: last changed more than a minute before `now`, milliseconds since 1970, or
 * after it, by a clock that was ahead. Whoever writes one at this moment does so by this host's clock.
 */
export async function removeLeftovers(path: string, now: number): Promise<void> {
  const folder = dirname(path);
  const names = (await readdir(folder)).filter((name) => isTemporaryOf(path, name));
  for (const leftover of names.map((name) => join(folder, name))) {
    const found = await lstat(leftover).catch(() => undefined);
    if (found?.isFile() === true && Math.abs(now - found.mtimeMs) > LEFTOVER_MS)
      await rm(leftover, { force: true });
  }
}

function isTemporaryOf(path: string, name: string): boolean {
  const prefix = prefixOf(path);
  return (
    name.startsWith(prefix) && name.endsWith(SUFFIX) && BY_US.test(name.slice(prefix.length, -SUFFIX.length))
  );
}

function prefixOf(path: string): string {
  return `.${basename(path)}.`;
}

/** The rename itself is durable only once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
