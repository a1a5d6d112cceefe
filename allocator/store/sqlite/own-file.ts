// SPDX-License-Identifier: Apache-2.0
// Whether a database's files are what they were, and this host's alone to write: SQLite takes whatever is under their names.
import { lstatSync, readdirSync, rmSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BerthError } from "../../base/errors.ts";

const BESIDE = ["", "-wal", "-shm"];
const OTHERS_WRITE = 0o022;

/** Throws CONFIG_INVALID for what is no file: a pipe would be waited for, without a word. */
export function requireFiles(path: string): void {
  for (const each of BESIDE.map((suffix) => `${path}${suffix}`)) {
    const found = statSync(each, { throwIfNoEntry: false });
    if (found !== undefined && !found.isFile())
      throw unusable(each, `is ${kindOf(found)}, not a file`, "move it away");
  }
}

/**
 * The same for who writes. A file with two names, or behind a link, would be written by two processes that do not know of each
 * other, each with a log of its own; one that others may write to says what they like.
 */
export function requireOwnFiles(path: string): void {
  requireFiles(path);
  removeDrafts(path);
  const { uid: folderOwner } = statSync(dirname(path));
  const owners = [0, process.getuid?.() ?? 0, folderOwner];
  for (const each of BESIDE.map((suffix) => `${path}${suffix}`)) {
    const found = lstatSync(each, { throwIfNoEntry: false });
    if (found === undefined) continue;
    if (found.isSymbolicLink()) throw unusable(each, "is a link", "put the file itself there");
    if (found.nlink > 1)
      throw unusable(
        each,
        "has a second name (a hard link)",
        `copy it: cp ${each} ${each}.own, and move that into its place`,
      );
    if (!owners.includes(found.uid))
      throw unusable(
        each,
        `belongs to the user with the id ${found.uid}`,
        `chown it, if you know what is in it`,
      );
    if ((found.mode & OTHERS_WRITE) !== 0)
      throw unusable(each, "may be written by others", `chmod go-w ${each}, if you know what is in it`);
  }
}

/** A process that was killed while it made the file has left a second name of it. */
function removeDrafts(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.nlink < 2) return;
  const [folder, begin] = [dirname(path), `${basename(path)}.new-`];
  for (const name of readdirSync(folder).filter((one) => one.startsWith(begin))) {
    const draft = lstatSync(join(folder, name, "draft"), { throwIfNoEntry: false });
    if (draft !== undefined && draft.ino === found.ino && draft.dev === found.dev)
      rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** The files that a process has open, by their names: it writes on into what has none any more, and that is lost. */
export class OpenFiles {
  readonly #paths: readonly string[];
  readonly #known = new Map<string, string>(); // path -> device and number

  constructor(path: string) {
    this.#paths = [path, `${path}-wal`];
  }

  /** To be asked while something is written, when all of them are there. Throws STORE_UNAVAILABLE. */
  requireInPlace(): void {
    for (const path of this.#paths) {
      const found = statSync(path, { throwIfNoEntry: false });
      const now = found === undefined ? "none" : `${found.dev}:${found.ino}`;
      const known = this.#known.get(path);
      if (known === undefined) this.#known.set(path, now);
      else if (known !== now) throw movedAway(path);
    }
  }
}

function movedAway(path: string): BerthError {
  const words = `${path} was moved, deleted or replaced while this process has it open, and what is written now would be lost; put it back, or restart Berth, which says whether what is there knows as much`;
  return new BerthError("STORE_UNAVAILABLE", words, { details: { path } });
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return "a folder";
  if (found.isFIFO()) return "a pipe";
  return found.isSocket() ? "a socket" : "a device";
}

function unusable(path: string, why: string, advice: string): BerthError {
  return new BerthError("CONFIG_INVALID", `${path} ${why}; ${advice}`, { details: { path } });
}
