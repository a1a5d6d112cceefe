// SPDX-License-Identifier: Apache-2.0
// What to say of a folder that a run cannot write into. Pure.

/** code of a system error -> why */
const REASONS: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", "no space is left: free some, or name"],
  ["EDQUOT", "the quota is used up: free some, or name"],
  ["EROFS", "it is on a read-only file system: name"],
  ["EACCES", "this user may not: name"],
  ["EPERM", "this user may not: name"],
  ["ENOENT", "there is no such folder: make it, or name"],
  ["ENOTDIR", "it is not in a folder: name"],
]);
const OTHERS = "other folders with TMPDIR (temporary files) and BERTH_REPORT (summaries)";

/** One line that says what to do; undefined: it is something else that went wrong. */
export function wordsOfUnwritable(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("syscall" in error) || !("code" in error)) return undefined;
  const reason = REASONS.get(String(error.code));
  const path = "path" in error ? String(error.path) : "a file";
  return reason === undefined ? undefined : `cannot write ${path}: ${reason} ${OTHERS}`;
}
