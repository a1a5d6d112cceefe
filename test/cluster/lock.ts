// SPDX-License-Identifier: Apache-2.0
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isSame, look, type Seen } from "./processes.ts";
import type { StateFolder } from "./state.ts";

/**
 * Does the work while no other process works on the same cluster; throws when one does. A lock whose process is gone
 * is none: whoever was interrupted holds nobody up.
 */
export async function withLock<T>(state: StateFolder, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(state.path), { recursive: true });
  const [file, mine] = [`${state.path}.lock`, `${state.path}.lock.${process.pid}`]; // beside it: it comes and goes
  const self = look(process.pid);
  writeFileSync(mine, JSON.stringify(self));
  try {
    const other = holderOf(file);
    if (other !== undefined && isSame(other))
      throw new Error(`process ${other.pid} is at work on this cluster`);
    rmSync(file, { force: true });
    linkSync(mine, file); // of two at once exactly one succeeds
  } finally {
    rmSync(mine, { force: true });
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

function holderOf(file: string): Seen | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Seen;
  } catch {
    return undefined;
  }
}
