// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../base/errors.ts";
import type { EtcdClient } from "./client.ts";
import { headOf } from "./entry.ts";
import { isCompacted } from "./errors.ts";
import type { KeyValue } from "./messages.ts";

/** How many later writes of the key are looked through. */
const STEPS = 16;

/**
 * Whether a write was done whose answer was lost, and which is not possible any more: by the history of its key, from what is
 * there now back to what it was to replace. Gives the write as it was done.
 */
export async function judgeLost(
  client: Pick<EtcdClient, "range">,
  lost: {
    readonly there: KeyValue | undefined;
    readonly modRevision: number;
    readonly write: string;
  },
): Promise<KeyValue | "not done" | "unknown"> {
  let entry = lost.there;
  for (let step = 0; step < STEPS; step++) {
    if (entry === undefined || entry.modRevision < lost.modRevision) return "unknown";
    if (entry.modRevision === lost.modRevision) return "not done";
    if (headOf(entry).write === lost.write) return entry;
    entry = await before(client, entry);
  }
  return "unknown";
}

/** What the key had before it was written so. */
async function before(
  client: Pick<EtcdClient, "range">,
  { key, modRevision }: KeyValue,
): Promise<KeyValue | undefined> {
  try {
    return (await client.range({ key, revision: modRevision - 1 })).entries[0];
  } catch (error) {
    if (isCompacted(error) || error instanceof BerthError) return undefined;
    throw error;
  }
}
