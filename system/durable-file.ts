// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { lstat, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

const SUFFIX = ".tmp";

/**
 * Replaces a file in one step that survives a crash: whoever reads it finds the old content or the new one, whole.
 * `mode` is exact, whatever the umask. Throws the errors of node:fs, and leaves no temporary file behind then.
 */
export async function writeDurably(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const folder = dirname(path);
  // in the same folder, because a rename does not cross file systems
  const temporary = join(folder, `${prefixOf(path)}${randomUUID()}${SUFFIX}`);
  try {
    const file = await open(temporary, "wx", mode);
    try {
      await file.chmod(mode);
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    // node names no path when a file that is open cannot be written
    throw error instanceof Error && !("path" in error) ? Object.assign(error, { path }) : error;
  }
  await syncFolder(folder);
}

/** Temporary files beside it that a crash has left behind, last changed before `before`, milliseconds since 1970. */
export async function removeLeftovers(path: string, before: number): Promise<void> {
  const folder = dirname(path);
  const names = (await readdir(folder)).filter((n) => n.startsWith(prefixOf(path)) && n.endsWith(SUFFIX));
  for (const leftover of names.map((name) => join(folder, name))) {
    const found = await lstat(leftover).catch(() => undefined);
    if (found !== undefined && found.mtimeMs < before) await rm(leftover, { force: true });
  }
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
