// SPDX-License-Identifier: Apache-2.0
import { readdirSync, rmSync, statfsSync } from "node:fs";
import { flushCompileCache, getCompileCacheDir } from "node:module";
import { basename, dirname, join } from "node:path";

/** In the folder of the journal; the chart has NODE_COMPILE_CACHE lead there. */
const FOLDER = "compile-cache";
/** Some times what the journal's log has at most: with less on the disk, all is left to the journal. */
const LEAST_ROOM = 64 * 1024 * 1024;
/** Of one version of Node.js, processor and set of V8's flags. */
const OF_A_VERSION = /^v\d+\.\d+\.\d+-/;
/** A file that Node.js was writing when it was killed, or for which there was no room. */
const UNFINISHED = /\.[A-Za-z0-9]{6}$/;

/**
 * Writes what V8 has compiled of the script, so that the next start on this node compiles less. Node.js does it by itself when the process
 * ends in order, but an agent that is killed has to be back the soonest; what it writes is what was compiled when the script was loaded, so
 * there is nothing to wait for. What is read there is used only if its checksum, the script and the flags of V8 are the same (Node.js,
 * `module.enableCompileCache`).
 */
export function keepCompiledCode(dataDir: string): void {
  tidyCompiledCode(dataDir);
  flushCompileCache();
}

/**
 * Removes what Node.js never would: what is of another version of it, and what is not finished. Where the disk has little room all goes, for a
 * write takes what there is, be it too little, and so does the folder, without which the end of the process writes nothing. It costs the
 * next start its time, as does whatever goes wrong here.
 */
export function tidyCompiledCode(dataDir: string): void {
  const own = getCompileCacheDir();
  const folder = join(dataDir, FOLDER);
  if (own === undefined || dirname(own) !== folder) return; // other programs have theirs there, perhaps
  try {
    const { bavail, bsize } = statfsSync(folder);
    if (bavail * bsize < LEAST_ROOM) {
      rmSync(folder, { recursive: true, force: true });
      return;
    }
    const others = readdirSync(folder).filter((name) => OF_A_VERSION.test(name) && name !== basename(own));
    const unfinished = readdirSync(own).filter((name) => UNFINISHED.test(name));
    const paths = [...others.map((name) => join(folder, name)), ...unfinished.map((name) => join(own, name))];
    for (const path of paths) rmSync(path, { recursive: true, force: true });
  } catch {
    // said above
  }
}
