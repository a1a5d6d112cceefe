// SPDX-License-Identifier: Apache-2.0
// Whether a database's files are what they were, and this host's alone to write: SQLite takes whatever is under their names.
import { lstatSync, readdirSync, rmSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BerthError } from "../../base/errors.ts";
import type { Logger } from "../../base/ports.ts";

const BESIDE = ["", "-wal", "-shm"];
const OTHERS_WRITE = 0o022;
/** What a file that is being made is called, in a folder of its own. */
export const DRAFT = "draft";
const DRAFT_FILES: readonly string[] = ["", "-wal", "-shm", "-journal"].map((suffix) => `${DRAFT}${suffix}`);

/** What the names of such folders begin with, beside the file. */
export function draftsBegin(path: string): string {
  return `${path}.new-`;
}

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
export function requireOwnFiles(path: string, log: Pick<Logger, "warn">): void {
  requireFiles(path);
  try {
    removeDrafts(path);
  } catch (error) {
    // a folder that may be entered, and not listed: the file is as good as ever
    log.warn("what killed processes have left beside a file is not looked for", { path, error });
  }
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

/**
 * Removes what processes that were killed while they made the file have left: second names of it, or files of their own. Once the file is there
 * all of that is nobody's, for whoever is still at it finds the name taken (createFile).
 */
function removeDrafts(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  const folder = dirname(path);
  const drafts = readdirSync(folder).filter((name) => isDraftName(name, basename(path)));
  for (const draft of drafts.map((name) => join(folder, name))) {
    try {
      if (holdsDraft(draft)) rmSync(draft, { recursive: true, force: true });
    } catch {
      // it does no harm, but for a second name, which is told
    }
  }
}

/** As mkdtemp makes it; what a person has put there is called otherwise, or has something else in it. */
function isDraftName(name: string, of: string): boolean {
  const begin = draftsBegin(of);
  return name.startsWith(begin) && /^[A-Za-z0-9]{6}$/.test(name.slice(begin.length));
}

function holdsDraft(folder: string): boolean {
  if (!lstatSync(folder).isDirectory()) return false;
  return readdirSync(folder).every((name) => DRAFT_FILES.includes(name));
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
