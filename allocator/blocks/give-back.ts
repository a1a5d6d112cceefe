// SPDX-License-Identifier: Apache-2.0

import type { Context } from "../cache/context.ts";
import { type Block, isReturned } from "../model/block.ts";
import type { Stored } from "../store/store.ts";

/** What proves that no sandbox has an address of the block, and that none will get one (invariant 3). */
export type BlockEvidence =
  /** The agent of the block's node said so, of this incarnation of the block. */
  | { readonly kind: "returned"; readonly uid: string }
  /** The node will never run its pods again. */
  | { readonly kind: "fenced"; readonly node: string };

/** What the block itself says: whoever acts on it compares with exactly this revision of it. */
export function returnedBy({ uid, record }: Stored<"block">): BlockEvidence | undefined {
  return isReturned(record) ? { kind: "returned", uid } : undefined;
}

/** Whether the evidence is about this block. A time that has passed is none. */
export function mayGiveBack(block: Stored<"block">, evidence: BlockEvidence): boolean {
  return evidence.kind === "fenced" ? evidence.node === block.record.node : evidence.uid === block.uid;
}

/**
 * Sets the block to cooling: from here on nobody gives from it. One that was never granted has been used by nobody and goes at
 * once. `changed`: it is no longer what was seen.
 */
export async function giveBack(
  { store, clock }: Pick<Context, "store" | "clock">,
  seen: Stored<"block">,
  evidence: BlockEvidence,
): Promise<"cooling" | "gone" | "changed" | "in use"> {
  if (seen.record.granted !== true) {
    return (await store.remove("block", seen)).kind === "removed" ? "gone" : "changed";
  }
  if (seen.record.releasedAt !== undefined) return "cooling";
  if (!mayGiveBack(seen, evidence)) return "in use";
  const cooling: Block = { ...seen.record, releasedAt: clock.now() };
  return (await store.replace("block", seen, cooling)).kind === "replaced" ? "cooling" : "changed";
}

/** Asks the owner to give the block back as soon as nobody uses it. */
export async function recall(
  { store, clock }: Pick<Context, "store" | "clock">,
  seen: Stored<"block">,
): Promise<void> {
  const { granted, recalledAt, releasedAt } = seen.record;
  if (granted !== true || recalledAt !== undefined || releasedAt !== undefined) return;
  await store.replace("block", seen, { ...seen.record, recalledAt: clock.now() });
}

/** Deletes a block that has cooled: anybody may have its addresses. */
export async function endCooldown(
  { store, clock, view }: Pick<Context, "store" | "clock" | "view">,
  seen: Stored<"block">,
): Promise<"gone" | "cooling" | "changed"> {
  const { pool, releasedAt } = seen.record;
  const cooldownMs = view.pool(pool)?.cooldownMs ?? 0;
  if (releasedAt === undefined || clock.now() < releasedAt + cooldownMs) return "cooling";
  return (await store.remove("block", seen)).kind === "removed" ? "gone" : "changed";
}
