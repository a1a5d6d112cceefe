// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * Replaces a file in one step that survives a crash: whoever reads it finds the old text or the new one, whole.
 * `mode` is exact, whatever the umask. Throws the errors of node:fs, and leaves no temporary file behind then.
 */
export async function writeDurably(path: string, text: string, mode: number): Promise<void> {
  const folder = dirname(path);
  // in the same folder, because a rename does not cross file systems
  const temporary = join(folder, `.${basename(path)}.${randomUUID()}.tmp`);
  try {
    const file = await open(temporary, "wx", mode);
    try {
      await file.chmod(mode);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
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
