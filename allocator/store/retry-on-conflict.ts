// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../base/errors.ts";
import type { Kind, Store, Stored } from "./store.ts";

/** How often an act starts again when records change under it, before it gives up with REVISION_CONFLICT. */
export const MAX_ATTEMPTS = 16;

interface Change<K extends Kind> {
  readonly kind: K;
  readonly key: string;
  /** What is being done to the record, for the words of the failure. */
  readonly doing: string;
  /** The record as it was seen just now, which saves the first read. */
  readonly seen?: Stored<K>;
}

/** What a log and an error call the key of a record. */
const KEY_NAMES = { claim: "claim", reservation: "address", pool: "pool", block: "block" } as const;

/**
 * Reads the record and lets `attempt` decide on it and change it by compare-and-set, once more for each "conflict": then
 * somebody else has changed it. Throws REVISION_CONFLICT when the record keeps changing.
 */
export async function retryOnConflict<K extends Kind, T>(
  store: Pick<Store, "get">,
  { kind, key, doing, seen }: Change<K>,
  attempt: (seen: Stored<K> | undefined) => Promise<T | "conflict">,
): Promise<T> {
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    const outcome = await attempt((round === 0 ? seen : undefined) ?? (await store.get(kind, key)));
    if (outcome !== "conflict") return outcome;
  }
  throw new BerthError("REVISION_CONFLICT", `${kind} ${key} kept changing while ${doing}`, {
    details: { [KEY_NAMES[kind]]: key },
  });
}
