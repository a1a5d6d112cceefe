// SPDX-License-Identifier: Apache-2.0

import type { Context } from "../cache/context.ts";
import type { Address } from "../ip/address.ts";
import { claimKey } from "../model/claim.ts";
import type { Stored } from "../store/store.ts";
import { cooldownOrphan } from "./orphan-mark.ts";

/**
 * Gives a claim's addresses back: the claim goes to releasing, from where nobody may use it, then its reservations
 * cool, then it is deleted. A crash in between is finished by the garbage collector. `changed`: the claim is no longer the one
 * that was judged; nothing was done.
 */
export async function release(context: Context, seen: Stored<"claim">): Promise<"released" | "changed"> {
  if (seen.record.releasing === true) return await finishRelease(context, seen);
  const { binding: _, retained: __, ...rest } = seen.record;
  const result = await context.store.replace("claim", seen, { ...rest, releasing: true });
  if (result.kind === "conflict") return "changed";
  return await finishRelease(context, result.stored);
}

async function finishRelease(context: Context, seen: Stored<"claim">): Promise<"released" | "changed"> {
  const { record } = seen;
  for (const address of record.addresses) await cool(context, address, record.nonce);
  // One that somebody deleted went with the write that ended its binding, or goes when others let it go.
  const removed = record.deleting === true || (await context.store.remove("claim", seen)).kind === "removed";
  if (!removed) return "changed";
  context.log.info("claim released", { claim: claimKey(record), address: record.addresses.join(",") });
  return "released";
}

/**
 * Sets the reservation of a releasing claim to cooling if it is the nonce's own. Until its pool's cooldown is over only
 * the same identity may have the address again: connections and caches of the old holder die out first.
 */
async function cool(context: Context, address: Address, nonce: string): Promise<void> {
  for (;;) {
    const seen = await context.store.get("reservation", address);
    if (seen === undefined || seen.record.nonce !== nonce || seen.record.releasedAt !== undefined) return;
    const { marked: _, ...rest } = seen.record;
    const next = { ...rest, releasedAt: context.clock.now() };
    if ((await context.store.replace("reservation", seen, next)).kind === "replaced") return;
  }
}

/** The same for an address that a living claim has stopped listing, unless it has come to list it again. */
export async function startCooldownIfDropped(
  context: Context,
  address: Address,
  nonce: string,
): Promise<void> {
  for (;;) {
    const seen = await context.store.get("reservation", address);
    if (seen === undefined || seen.record.nonce !== nonce || seen.record.releasedAt !== undefined) return;
    if ((await cooldownOrphan(context, seen, context.clock.now())) !== "changed") return;
  }
}
