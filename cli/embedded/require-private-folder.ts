// SPDX-License-Identifier: Apache-2.0
import { access, constants } from "node:fs/promises";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { makeFolder } from "../../system/folders.ts";
import { describePathError } from "../../system/path-error.ts";
import { whyShared } from "../../system/private-folder.ts";

/**
 * Makes the folder, for this user alone, or makes sure that no other one may put files into it: whoever can is able to put
 * another stack in the place of this one. One below /tmp may have been made by anybody.
 * @throws BerthError CONFIG_INVALID
 */
export async function ensurePrivate(folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    const why = await whyShared(folder);
    if (why !== undefined) throw unsafe(folder, why);
  } catch (error) {
    if (error instanceof BerthError) throw error;
    const why = describePathError(error) ?? messageOf(error);
    const words = `no data can be kept in ${folder} (chosen with --data or BERTH_DATA): ${why}`;
    throw new BerthError("CONFIG_INVALID", words, { details: { path: folder }, cause: error });
  }
}

/**
 * Makes sure of the same before anything in the folder is believed: whoever else can put files there can name a stack of his own, or a
 * process to end. Where there is none, or one that is closed to this user, whoever opens it says so.
 * @throws BerthError CONFIG_INVALID
 */
export async function requirePrivate(folder: string): Promise<void> {
  try {
    await access(folder, constants.X_OK);
  } catch {
    return;
  }
  const why = await whyShared(folder);
  if (why !== undefined) throw unsafe(folder, why);
}

function unsafe(folder: string, why: string): BerthError {
  const words = `${folder} is not safe to keep data in: ${why}; or choose another --data folder`;
  return new BerthError("CONFIG_INVALID", words, { details: { path: folder } });
}
