// SPDX-License-Identifier: Apache-2.0
import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { BerthError } from "../allocator/base/errors.ts";
import { errnoOf } from "./path-error.ts";

/**
 * Makes a folder and what is missing above it, for this user alone. Not node's own recursive mkdir: where a file system says
 * ENOENT of every new folder, as /proc does, that one tries for ever and hears no signal.
 * @throws the errors of node:fs; BerthError CONFIG_INVALID when something else is there
 */
export async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  let folder = resolve(path);
  for (; !(await isFolder(folder)); folder = dirname(folder)) missing.push(folder);
  for (const each of missing.reverse()) {
    try {
      await mkdir(each, { mode: 0o700 });
    } catch (error) {
      // somebody else was first; or it is a link to nowhere, or no folder
      if (errnoOf(error) !== "EEXIST" || !(await isFolder(each))) throw error;
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
  throw new BerthError("CONFIG_INVALID", `${path} is not a folder; name another path`, { details: { path } });
}
