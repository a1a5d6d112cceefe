// SPDX-License-Identifier: Apache-2.0

/** The errno of what node:fs throws; undefined of anything else. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Whether there was no room for what was to be written: there may be some again at any moment. */
export function isFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(errnoOf(error) ?? "");
}

/** Of a path at which nothing is, or can be, or no file. */
const ABSENT = ["ENOENT", "ENOTDIR", "EISDIR", "ENAMETOOLONG"];

/** Whether it says that nothing is at the path. Any other error says nothing of what is there. */
export function isAbsence(error: unknown): boolean {
  return ABSENT.includes(errnoOf(error) ?? "");
}

/** For `catch`: `none` for what is not there, or is no file; throws everything else again. */
export function noneIfAbsent<T>(none: T): (error: unknown) => T {
  return (error) => {
    if (isAbsence(error)) return none;
    throw error;
  };
}

/** What is wrong with a path, and what to do. */
const MESSAGES: Readonly<Record<string, string>> = {
  EACCES: "you may not use it; run as a user who may, or name another path",
  EPERM: "you may not use it; run as a user who may, or name another path",
  EROFS: "its file system is read-only; mount it for writing, or name another path",
  ENOSPC: "the disk is full; free some space on it, or name a path on another disk",
  EDQUOT: "your quota on the disk is used up; free some space on it, or name a path on another disk",
  ENOENT: "it does not exist, or cannot be made there; name another path",
  ENOTDIR: "a part of the path is not a folder; name another path",
  EEXIST: "something else is there; name another path",
  EISDIR: "it is a folder; name a file",
  ELOOP: "its links lead in a circle; name another path",
  ENAMETOOLONG: "it is too long; name a shorter path",
  EMFILE: "too many files are open; raise the limit of open files (ulimit -n)",
  ENFILE: "too many files are open on this host; close some programs",
  EIO: "its disk fails; look at the kernel's log (dmesg), or name a path on another disk",
};

/** An error of the file system at a path that somebody gave, in words; undefined of anything else. */
export function describePathError(error: unknown): string | undefined {
  const errno = errnoOf(error);
  if (errno === undefined || !(error instanceof Error)) return undefined;
  const words = MESSAGES[errno];
  if (words === undefined || !("path" in error) || typeof error.path !== "string") return undefined;
  return `${error.path} cannot be used (${errno}): ${words}`;
}
