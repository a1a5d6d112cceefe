// SPDX-License-Identifier: Apache-2.0
// What the writes of every store have in common.

import { BerthError } from "../base/errors.ts";
import type { Kind, Records } from "./store.ts";

/** Throws STORE_UNAVAILABLE once the store is being closed. */
export function mustBeOpen(closing: AbortController): void {
  if (closing.signal.aborted) throw new BerthError("STORE_UNAVAILABLE", "the store is closed");
}

/** `next` with the status of what is there: a replace writes everything but that. */
export function withStatusOf<K extends Kind>(there: Records[K], next: Records[K]): Records[K] {
  const rest = withoutStatus(next);
  return "status" in there ? { ...rest, status: there.status } : rest;
}

/** What a create writes: a block has no status before its owner says something. */
export function asCreated<K extends Kind>(kind: K, record: Records[K]): Records[K] {
  return kind === "block" ? withoutStatus(record) : record;
}

function withoutStatus<R extends Records[Kind]>(record: R): R {
  if (!("status" in record)) return record;
  const { status: _, ...rest } = record;
  return rest as unknown as R; // whoever needs one puts it there again
}
