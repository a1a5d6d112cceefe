// SPDX-License-Identifier: Apache-2.0
import { type BigIntStats, statSync } from "node:fs";
import { isAbsence } from "../../../system/path-error.ts";

/**
 * Synchronous: namespaces lie in memory (nsfs, procfs) and are looked at in 5 µs, while two trips to a thread and back
 * would be a fifth of an ADD, and more on a busy node.
 */
export function outcomeOf(path: string): BigIntStats | "absent" | "hidden" {
  try {
    return statSync(path, { bigint: true });
  } catch (error) {
    // A process of another user keeps its namespaces to itself: that says nothing of whether they are there.
    return isAbsence(error) ? "absent" : "hidden";
  }
}

/** What is there, by device and inode. */
export function identityIn({ dev, ino }: Pick<BigIntStats, "dev" | "ino">): string {
  return `${dev}:${ino}`;
}
