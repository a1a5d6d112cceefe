// SPDX-License-Identifier: Apache-2.0
import { lstat, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";

const GROUP_WRITES = 0o020;
const ALL_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Why somebody else could put files into the folder, or another folder in its place, with what to do; undefined: only this user and root
 * can. Throws the errors of node:fs.
 */
export async function whyShared(folder: string): Promise<string | undefined> {
  const own = process.getuid?.() ?? 0;
  // a link, too: its owner can lead it elsewhere
  for (const { uid } of [await lstat(folder), await stat(folder)]) {
    if (uid !== own && uid !== 0)
      return `it belongs to the user with the id ${uid}, and berth runs as ${own}`;
  }
  const { mode, gid } = await stat(folder);
  const othersWrite = (mode & ALL_WRITE) !== 0 || ((mode & GROUP_WRITES) !== 0 && gid !== 0);
  if (othersWrite) return `others may write to it; take that away: chmod go-w ${folder}`;
  return await whyReplaceable(await realpath(folder));
}

/** Who may write to a folder above it, or owns one, can rename what is in there; where it is sticky, as /tmp is, only its owner can. */
async function whyReplaceable(folder: string): Promise<string | undefined> {
  const own = process.getuid?.() ?? 0;
  for (let above = dirname(folder); above !== dirname(above); above = dirname(above)) {
    const { mode, uid, gid } = await stat(above);
    if (uid !== own && uid !== 0)
      return `the user with the id ${uid} may rename it, for ${above} belongs to that user, and berth runs as ${own}; put it elsewhere`;
    if ((mode & STICKY) !== 0) continue;
    if ((mode & ALL_WRITE) !== 0)
      return `others may rename it, for they may write to ${above}; take that away: chmod o-w ${above}`;
    // a group of this user's own, by its number, as distributions make one for each user
    if ((mode & GROUP_WRITES) !== 0 && gid !== 0 && gid !== own)
      return `the group with the id ${gid} may rename it, for it may write to ${above}; take that away: chmod g-w ${above}, or put it elsewhere`;
  }
  return undefined;
}
