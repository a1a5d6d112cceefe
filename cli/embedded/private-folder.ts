// SPDX-License-Identifier: Apache-2.0
import { lstat, stat } from "node:fs/promises";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { makeFolder } from "../../system/folders.ts";
import { describePathError } from "../../system/path-error.ts";

const OTHERS_WRITE = 0o022;

/**
 * Makes the folder, for this user alone, or makes sure that no other one may put files into it: whoever can is able to put
 * another stack in the place of this one. One below /tmp may have been made by anybody.
 * @throws BerthError CONFIG_INVALID
 */
export async function ensurePrivate(folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    await refuseOthers(folder);
  } catch (error) {
    if (error instanceof BerthError) throw error;
    const why = describePathError(error) ?? messageOf(error);
    const words = `no data can be kept in ${folder} (chosen with --data or BERTH_DATA): ${why}`;
    throw new BerthError("CONFIG_INVALID", words, { details: { path: folder }, cause: error });
  }
}

async function refuseOthers(folder: string): Promise<void> {
  const own = process.getuid?.() ?? 0;
  // a link, too: its owner can lead it elsewhere
  for (const { uid } of [await lstat(folder), await stat(folder)]) {
    if (uid === own || uid === 0) continue;
    throw unsafe(folder, `it belongs to the user with the id ${uid}, and berth runs as ${own}`);
  }
  const { mode } = await stat(folder);
  if ((mode & OTHERS_WRITE) !== 0)
    throw unsafe(folder, `others may write to it; take that away: chmod go-w ${folder}`);
}

function unsafe(folder: string, why: string): BerthError {
  const words = `${folder} is not safe to keep data in: ${why}; or choose another --data folder`;
  return new BerthError("CONFIG_INVALID", words, { details: { path: folder } });
}
