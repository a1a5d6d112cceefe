// SPDX-License-Identifier: Apache-2.0
// The attempt that made a claim may be about to undo it. It does so by the revision that it wrote, so that one write more prevents it.

import type { Context } from "../cache/context.ts";
import { isBound } from "../model/claim.ts";
import type { Store, Stored } from "../store/store.ts";
import { around } from "./block-conflict.ts";

/** More than that are not remembered: forgotten ones are written once more. */
const MOST = 10_000;
/** What this process has written so, by the uid and nonce of the claim: whoever asks again and again costs one write. */
const written = new WeakMap<Store, Set<string>>();

/**
 * For whoever is to reserve again what the claim lists and lacks: the attempt that made it may be about to undo it, and cannot
 * once it is written again. One that is bound was written since. Undefined: somebody changed it.
 */
export async function keepFromUndo(
  { store }: Pick<Context, "store">,
  known: Stored<"claim">,
): Promise<Stored<"claim"> | undefined> {
  const { record } = known;
  if (isBound(record)) return known;
  // it waits no longer by that; but an API server makes no new revision of what stays the same
  const admittedAt = Math.max(known.createdAt, record.admittedAt ?? 0) + 1;
  const replaced = await store.replace("claim", known, { ...record, admittedAt });
  return replaced.kind === "replaced" ? replaced.stored : undefined;
}

/** The same for whoever is to tell a pod of the claim: the attempt may have read a block around an address that has gone since (ADR 0020). */
export async function keepForPod(
  { store, view }: Pick<Context, "store" | "view">,
  known: Stored<"claim">,
): Promise<Stored<"claim"> | undefined> {
  const { addresses, nonce } = known.record;
  if (addresses.every((address) => around(view, address).length === 0)) return known;
  const seen = written.get(store) ?? new Set();
  written.set(store, seen);
  const which = `${known.uid} ${nonce}`;
  if (seen.has(which)) return known;
  const kept = await keepFromUndo({ store }, known);
  if (kept === undefined) return undefined;
  if (seen.size >= MOST) seen.clear();
  seen.add(which);
  return kept;
}
