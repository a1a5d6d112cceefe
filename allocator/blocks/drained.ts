// SPDX-License-Identifier: Apache-2.0
import type { RecordCache } from "../cache/cache.ts";

/**
 * Whether nodes are to give back what they have of the pool: it is disabled, or gone. One that is there and cannot be read, as a newer
 * version may have written it, is as it was by all that is known: its blocks are for whoever can read it.
 */
export function isDrained(view: Pick<RecordCache, "pool" | "poolRecord">, name: string): boolean {
  const pool = view.pool(name);
  return pool === undefined ? view.poolRecord(name) === undefined : pool.disabled;
}
